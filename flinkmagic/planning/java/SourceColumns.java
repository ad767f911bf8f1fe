package flinkmagic.planning;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.IdentityHashMap;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.storage.StorageLevel;
import scala.Tuple2;
import scala.collection.JavaConverters;

/**
 * Computed columns of text files, kept with what is read beside them: what is costly to compute and cannot raise.
 *
 * It is a rule of the optimiser of our own clones of the session, applied last: there a query's columns, filters and
 * projections are as Spark will run them. A text source under them is read from kept columns if these hold all that the
 * query needs of it. Else, if the query computes such columns of all of its rows anyway and it is allowed, the rule has
 * them kept while the query itself reads them: nothing is read that the query would not read, and no stage is added. Of a
 * query that computes none, `KeptSlices` keeps parts.
 *
 * The files are parsed in PERMISSIVE mode without a column for corrupt records only: in the other modes it depends on
 * the columns that are asked for which rows there are, and whether reading them raises. Computed columns are total (see
 * `TotalExpressions`), as they are computed on rows that a filter of the query removes. Seen on Spark 3.5.9 and 4.3.0.
 */
public class SourceColumns extends Rule {
    private static final HashSet<String> FORMATS = new HashSet<String>(Arrays.asList(new String[] {
        "CSVFileFormat", "JsonFileFormat", "TextFileFormat"
    }));

    private final ThreadLocal current = new ThreadLocal();

    // -- sources --------------------------------------------------------------------------------------

    /**
     * The sources of a query whose columns may be kept, each one once; null if there are none. What the user has cached
     * is not read from its source.
     */
    public LogicalRelation[] sources(QueryExecution query) throws Exception {
        ArrayList<LogicalPlan> leaves = new ArrayList<LogicalPlan>();
        boolean hasCaches = !query.sparkSession().sharedState().cacheManager().isEmpty();
        PlanLeaves.add(hasCaches ? query.withCachedData() : query.analyzed(), leaves);
        IdentityHashMap<Object, LogicalPlan> found = new IdentityHashMap<Object, LogicalPlan>();
        for (LogicalPlan leaf : leaves) {
            if (leaf instanceof LogicalRelation && isText((LogicalRelation) leaf)) {
                found.put(((LogicalRelation) leaf).relation(), leaf);
            }
        }
        return found.isEmpty() ? null : (LogicalRelation[]) found.values().toArray(new LogicalRelation[0]);
    }

    /** How many bytes the files of a source have, a blank, and their folders, or the file, as the user gave them. */
    public String files(LogicalRelation source) {
        FileIndex files = relationOf(source).location();
        return files.sizeInBytes() + " " + files.rootPaths().mkString(", ");
    }

    private static HadoopFsRelation relationOf(LogicalRelation source) {
        return (HadoopFsRelation) source.relation();
    }

    /** Whether the rows of a source are the same whatever columns of it are asked for. */
    private static boolean isText(LogicalRelation source) throws Exception {
        if (!(source.relation() instanceof HadoopFsRelation) || source.isStreaming()) {
            return false;
        }
        HadoopFsRelation relation = relationOf(source);
        String format = relation.fileFormat().getClass().getSimpleName();
        if (!FORMATS.contains(format)
            || !relation.partitionSchema().isEmpty() || source.output().size() != relation.dataSchema().size()) {
            return false;
        }
        if ("true".equals(relation.sparkSession().conf().get("spark.sql.files.ignoreCorruptFiles"))
            || "true".equals(relation.sparkSession().conf().get("spark.sql.files.ignoreMissingFiles"))) {
            return false;
        }
        String corrupt = relation.sparkSession().conf().get("spark.sql.columnNameOfCorruptRecord");
        boolean partly = "true".equals(relation.sparkSession().conf().get("spark.sql.json.enablePartialResults", "true"));
        for (Tuple2 option : JavaConverters.asJavaIterable(relation.options())) {
            String name = ((String) option._1()).toLowerCase();
            String value = ((String) option._2()).toLowerCase();
            if (name.equals("mode") && !value.equals("permissive") || name.equals("enforceschema") && !value.equals("true")
                || name.startsWith("ignorecorruptfiles") || name.startsWith("ignoremissingfiles")) {
                return false;
            }
            corrupt = name.equals("columnnameofcorruptrecord") ? (String) option._2() : corrupt;
        }
        return !Arrays.asList(relation.dataSchema().fieldNames()).contains(corrupt)
            && (partly || !format.equals("JsonFileFormat"));
    }

    // -- a query --------------------------------------------------------------------------------------

    /** From now on what this thread plans on a session may read kept columns, and, if it keeps any, at a storage level. */
    public void open(ColumnPlanning planning, SessionState state, StorageLevel level, boolean keeps) {
        planning.on(state, level, keeps);
        scala.collection.Seq rules = state.experimentalMethods().extraOptimizations();
        if (!rules.contains(this)) {
            ArrayList all = new ArrayList(JavaConverters.seqAsJavaList(rules));
            all.add(this);
            state.experimentalMethods().extraOptimizations_$eq(
                (scala.collection.immutable.Seq) (Object) PlanNodes.vector(all));
        }
        current.set(planning);
    }

    /** Nothing more of it is planned. */
    public void close() {
        current.remove();
    }

    @Override
    public TreeNode apply(TreeNode plan) {
        ColumnPlanning planning = (ColumnPlanning) current.get();
        if (planning == null || asksForFiles((LogicalPlan) plan)) {
            return plan;
        }
        current.remove();  // what is kept is planned meanwhile, and reads the files
        try {
            return rewrite((LogicalPlan) plan, false, planning);
        } catch (RuntimeException error) {
            throw error;
        } catch (Exception error) {
            throw new IllegalStateException(error);
        } finally {
            current.set(planning);
        }
    }

    /** @param stops whether whoever asks for the rows of a plan may not ask for all of them */
    private static LogicalPlan rewrite(LogicalPlan plan, boolean stops, ColumnPlanning planning) throws Exception {
        ColumnPlanning.Source source = sourceOf(plan, planning);
        if (source != null) {
            return new SourceScan(plan, null, null).over(source, stops);
        }
        boolean below = FrameParts.isLimit(plan) || stops && !FrameParts.readsAll(plan);
        Project project = plan instanceof Project ? (Project) plan : null;
        Aggregate aggregate = plan instanceof Aggregate ? (Aggregate) plan : null;
        if (aggregate != null && aggregate.child() instanceof Project) {
            project = (Project) aggregate.child();
        }
        LogicalPlan rows = project != null ? project.child() : aggregate != null ? aggregate.child() : null;
        source = rows == null ? null : sourceOf(rows, planning);
        if (source != null) {
            return new SourceScan(rows, project, aggregate).over(source, below);
        }
        ArrayList<LogicalPlan> children = new ArrayList<LogicalPlan>();
        for (LogicalPlan child : JavaConverters.asJavaIterable(plan.children())) {
            children.add(rewrite(child, below, planning));
        }
        return (LogicalPlan) PlanNodes.withChildren((TreeNode) plan, children);
    }

    /** The known source of a plan that is nothing but filters of its rows. */
    private static ColumnPlanning.Source sourceOf(LogicalPlan plan, ColumnPlanning planning) {
        LogicalPlan leaf = plan;
        while (leaf instanceof Filter && ((Filter) leaf).condition().deterministic()) {
            leaf = ((Filter) leaf).child();
        }
        return leaf instanceof LogicalRelation ? planning.sourceOf(((LogicalRelation) leaf).relation()) : null;
    }

    /** Whether a query asks of its rows from which file they are: kept ones do not know. */
    public static boolean asksForFiles(LogicalPlan plan) {
        boolean asks = false;
        for (Expression expression : JavaConverters.asJavaIterable(plan.expressions())) {
            asks = asks || asksForFiles(expression);
        }
        for (LogicalPlan child : JavaConverters.asJavaIterable(plan.children())) {
            asks = asks || asksForFiles(child);
        }
        return asks;
    }

    private static boolean asksForFiles(Expression expression) {
        boolean asks = expression.getClass().getSimpleName().startsWith("InputFile");
        for (Expression child : JavaConverters.asJavaIterable(expression.children())) {
            asks = asks || asksForFiles(child);
        }
        return asks;
    }
}
