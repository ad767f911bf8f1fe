package flinkmagic.planning;

import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.plans.logical.BaseEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.FileTable;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.JavaConverters;

/** Which optimised plans are total: see `TotalExpressions`. */
public class TotalPlans {
    private static final HashSet<String> OPERATORS = new HashSet<String>(Arrays.asList((
        "Aggregate CTERelationDef CTERelationRef Distinct Expand Filter Generate GlobalLimit HiveTableRelation Join"
        + " LocalLimit LocalRelation Offset OneRowRelation Project Range RebalancePartitions Repartition"
        + " RepartitionByExpression ResolvedHint Sample Sort SubqueryAlias Union View Window WindowGroupLimit WithCTE"
    ).split(" ")));

    /** Files whose malformed parts are null, if their reader may say so; not `binaryFile`, which refuses large ones. */
    private static final HashSet<String> FORMATS = new HashSet<String>(Arrays.asList((
        "CSVFileFormat DeltaParquetFileFormat JsonFileFormat OrcFileFormat ParquetFileFormat TextFileFormat XmlFileFormat"
    ).split(" ")));

    /** Whether an optimised plan is total. */
    public boolean isTotal(LogicalPlan plan) throws Exception {
        return partialOf(plan).isEmpty();
    }

    /**
     * What of an optimised plan is partial, and in how many places: operators by their names, and what they evaluate,
     * with all guards around what may raise. Two plans of one DataFrame for which that is equal raise alike.
     */
    public static HashMap<Object, Integer> partialOf(LogicalPlan plan) throws Exception {
        HashMap<Object, Integer> found = new HashMap<Object, Integer>();
        HashMap<ExprId, Object> results = new HashMap<ExprId, Object>();
        addResults(plan, results);
        addPartial(plan, found, new Replacement(new Calls(results)));
        return found;
    }

    /** Adds by the id of each column that holds results of a Python function, which is made up, the call. */
    private static void addResults(LogicalPlan plan, HashMap<ExprId, Object> found) {
        if (plan instanceof BaseEvalPython) {
            Iterator calls = ((BaseEvalPython) plan).udfs().iterator();
            Iterator results = ((BaseEvalPython) plan).resultAttrs().iterator();
            while (calls.hasNext()) {
                found.put(((Attribute) results.next()).exprId(), calls.next());
            }
        }
        for (LogicalPlan child : JavaConverters.asJavaIterable(plan.children())) {
            addResults(child, found);
        }
    }

    /** Whether an operator is total, whatever is below it. */
    public static boolean isTotalItself(LogicalPlan plan) throws Exception {
        HashMap<Object, Integer> found = new HashMap<Object, Integer>();
        addOwn(plan, found, new Replacement(new Calls(new HashMap<ExprId, Object>())));
        return found.isEmpty();
    }

    private static void addPartial(LogicalPlan plan, HashMap<Object, Integer> found, Replacement calls)
            throws Exception {
        addOwn(plan, found, calls);
        for (LogicalPlan child : JavaConverters.asJavaIterable(plan.children())) {
            addPartial(child, found, calls);
        }
    }

    private static void addOwn(LogicalPlan plan, HashMap<Object, Integer> found, Replacement calls) throws Exception {
        if (!OPERATORS.contains(TotalExpressions.nameOf(plan)) && !isTotalLeaf(plan)) {
            count(plan.getClass(), found);
        }
        for (Expression each : JavaConverters.asJavaIterable(plan.expressions())) {
            if (!plan.children().isEmpty() && !isTotal(each)) {  // those of a leaf only tell how its rows lie
                Expression one = each instanceof Alias ? ((Alias) each).child() : each;
                count(((Expression) one.transformDown(calls)).canonicalized(), found);
            }
        }
    }

    private static void count(Object one, HashMap<Object, Integer> found) {
        Integer before = (Integer) found.get(one);
        found.put(one, Integer.valueOf(before == null ? 1 : before.intValue() + 1));
    }

    /** Whether an expression is total, with all that is inside it. */
    public static boolean isTotal(Expression expression) throws Exception {
        if (!(expression instanceof PlanExpression)
            ? !TotalExpressions.isTotal(expression) : !isTotalQuery((PlanExpression) expression)) {
            return false;
        }
        for (Expression child : JavaConverters.asJavaIterable(expression.children())) {
            if (!isTotal(child)) {
                return false;
            }
        }
        return true;
    }

    /** A scalar subquery raises if it has two rows. */
    private static boolean isTotalQuery(PlanExpression expression) throws Exception {
        LogicalPlan query = (LogicalPlan) expression.plan();
        Option rows = query.maxRows();
        boolean isOne = expression instanceof ScalarSubquery && rows.isDefined()
            && ((Number) rows.get()).longValue() <= 1;
        return (isOne || expression instanceof DynamicPruningSubquery) && partialOf(query).isEmpty();
    }

    private static boolean isTotalLeaf(LogicalPlan plan) {
        if (plan instanceof InMemoryRelation) {  // one that is not filled computes what is cached
            CachedRDDBuilder rows = ((InMemoryRelation) plan).cacheBuilder();
            return PlanLeaves.isOfRun(rows) || rows.isCachedColumnBuffersLoaded();
        }
        if (plan instanceof LogicalRDD) {  // whatever made its rows has done so
            return ((LogicalRDD) plan).rdd().isCheckpointed();
        }
        if (plan instanceof DataSourceV2ScanRelation) {
            DataSourceV2ScanRelation scan = (DataSourceV2ScanRelation) plan;
            return scan.relation().table() instanceof FileTable && isLenient(scan.relation().options());
        }
        if (plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation) {
            HadoopFsRelation files = (HadoopFsRelation) ((LogicalRelation) plan).relation();
            return FORMATS.contains(files.fileFormat().getClass().getSimpleName())
                && TotalExpressions.isLenient(files.options());
        }
        return false;
    }

    /** As `TotalExpressions.isLenient`, of options whose names have no case. */
    private static boolean isLenient(Map<String, String> options) {
        Object mode = options.get("mode");
        return mode == null || "permissive".equalsIgnoreCase((String) mode);
    }

    /** The calls whose results columns are. */
    static class Calls implements Replacement.Rule {
        private final HashMap<ExprId, Object> results;

        Calls(HashMap<ExprId, Object> results) {
            this.results = results;
        }

        @Override
        public Object of(Object expression) {
            return expression instanceof Attribute ? results.get(((Attribute) expression).exprId()) : null;
        }
    }
}
