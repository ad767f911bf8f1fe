package flinkmagic.planning;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.LambdaFunction;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.package$;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.plans.QueryPlan$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.CommandExecutionMode$;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.columnar.InMemoryRelation$;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.storage.StorageLevel;
import scala.Function1;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Nil$;
import scala.runtime.AbstractPartialFunction;

/**
 * Columns of text files, kept as columns: what queries read of them, and what they compute of them that cannot raise.
 *
 * It is a rule of the optimiser of our own clones of the session, applied last: there a query's columns, filters and
 * projections are as Spark will run them. A text source under them is read from kept columns if these hold all that the
 * query needs of it. Else, if the query reads all of its rows anyway and it is allowed, the rule has the needed columns
 * kept while the query itself reads them: nothing is read that the query would not read, and no stage is added.
 *
 * The files are parsed in PERMISSIVE mode without a column for corrupt records only: in the other modes it depends on
 * the columns that are asked for which rows there are, and whether reading them raises. Computed columns are total (see
 * `TotalExpressions`), as they are computed on rows that a filter of the query removes. Seen on Spark 3.5.9 and 4.3.0.
 */
public class SourceColumns extends Rule {
    private static final HashSet FORMATS = new HashSet(Arrays.asList(new Object[] {
        "CSVFileFormat", "JsonFileFormat", "TextFileFormat"
    }));

    /** What takes so much longer to compute than to read that its results are kept as columns. */
    private static final HashSet COSTLY = new HashSet(Arrays.asList(new Object[] {
        "DateFormatClass", "FromUnixTime", "GetJsonObject", "GetTimestamp", "JsonToStructs", "Levenshtein", "Md5", "RLike",
        "RegExpExtract", "RegExpExtractAll", "RegExpReplace", "Sha1", "Sha2", "StringSplit", "ToUnixTimestamp",
        "UnixTimestamp"
    }));

    /** With these a filter may let a row pass of which nothing could be parsed; see `isServable`. */
    private static final HashSet LET_NULLS_PASS = new HashSet(Arrays.asList(new Object[] {
        "AtLeastNNonNulls", "CaseWhen", "Coalesce", "EqualNullSafe", "If", "IsNull", "NaNvl", "Not", "Or"
    }));

    private final ThreadLocal current = new ThreadLocal();
    private final Map kept = new HashMap();
    /** By the key of a source, what queries have read or computed of it from its files. */
    private final Map seen = new HashMap();

    // -- what is kept ---------------------------------------------------------------------------------

    /** The sources of a query whose columns may be kept, each one once; null if there are none. */
    public LogicalRelation[] sources(QueryExecution query) throws Exception {
        ArrayList leaves = new ArrayList();
        PlanLeaves.add(query.analyzed(), leaves);
        IdentityHashMap found = new IdentityHashMap();
        for (int i = 0; i < leaves.size(); i++) {
            if (leaves.get(i) instanceof LogicalRelation && isText((LogicalRelation) leaves.get(i))) {
                found.put(((LogicalRelation) leaves.get(i)).relation(), leaves.get(i));
            }
        }
        return found.isEmpty() ? null : (LogicalRelation[]) found.values().toArray(new LogicalRelation[0]);
    }

    /** How many bytes the files of a source have, a blank, and their folders, or the file, as the user gave them. */
    public String files(LogicalRelation source) {
        FileIndex files = relationOf(source).location();
        return files.sizeInBytes() + " " + files.rootPaths().mkString(", ");
    }

    /** Whether columns of a source are kept, and all there. */
    public synchronized boolean isKept(String key) {
        Kept one = (Kept) kept.get(key);
        return one != null && one.relation.cacheBuilder().isCachedColumnBuffersLoaded();
    }

    /** What queries read from now on, once it is all there. */
    public synchronized void keep(String key, Object filled) {
        kept.put(key, filled);
    }

    /** Forget what is kept of a source, if it is held by this builder. */
    public synchronized void forget(String key, CachedRDDBuilder builder) {
        Kept one = (Kept) kept.get(key);
        if (one != null && one.relation.cacheBuilder() == builder) {
            kept.remove(key);
        }
    }

    private synchronized boolean isSeen(String key, List slots) {
        return seen.containsKey(key) && !java.util.Collections.disjoint((HashSet) seen.get(key), slots);
    }

    private synchronized void see(String key, List slots) {
        if (!seen.containsKey(key)) {
            seen.put(key, new HashSet());
        }
        ((HashSet) seen.get(key)).addAll(slots);
    }

    private synchronized Kept keptOf(String key) {
        return isKept(key) ? (Kept) kept.get(key) : null;
    }

    // -- a query --------------------------------------------------------------------------------------

    /** From now on what this thread plans may read kept columns. */
    public void open(Planning planning) {
        current.set(planning);
    }

    /** Nothing more of it is planned. */
    public void close() {
        current.remove();
    }

    /** The planning of a query. */
    public Planning planning() {
        return new Planning(this);
    }

    public TreeNode apply(TreeNode plan) {
        Planning planning = (Planning) current.get();
        if (planning == null || planning.isBusy || planning.known.isEmpty()) {
            return plan;
        }
        planning.isBusy = true;
        try {
            return asksForFiles((LogicalPlan) plan) ? plan : rewrite((LogicalPlan) plan, false, planning);
        } catch (RuntimeException error) {
            throw error;
        } catch (Exception error) {
            throw new IllegalStateException(error);
        } finally {
            planning.isBusy = false;
        }
    }

    private LogicalPlan rewrite(LogicalPlan plan, boolean stops, Planning planning) throws Exception {
        LogicalRelation leaf = leafOf(plan, planning);
        if (leaf != null) {
            return new Narrow(plan, null, null, leaf).over(planning, stops);
        }
        boolean below = FrameParts.isLimit(plan) || stops && !FrameParts.readsAll(plan, FrameParts.isShuffled(plan));
        ArrayList children = new ArrayList();
        boolean changed = false;
        Iterator old = plan.children().iterator();
        while (old.hasNext()) {
            LogicalPlan child = (LogicalPlan) old.next();
            LogicalRelation source = leafOf(child, planning);
            Project project = child instanceof Project ? (Project) child : null;
            if (source != null && (plan instanceof Project || plan instanceof Aggregate)) {
                return new Narrow(child, plan instanceof Project ? (Project) plan : null,
                    plan instanceof Aggregate ? (Aggregate) plan : null, source).over(planning, below);
            }
            source = project == null ? null : leafOf(project.child(), planning);
            if (source != null && plan instanceof Aggregate) {
                return new Narrow(project.child(), project, (Aggregate) plan, source).over(planning, below);
            }
            LogicalPlan made = rewrite(child, below, planning);
            changed = changed || made != child;
            children.add(made);
        }
        return changed ? withChildren(plan, children) : plan;
    }

    private static LogicalPlan withChildren(LogicalPlan plan, ArrayList children) {
        LogicalPlan made = (LogicalPlan) ((TreeNode) plan).withNewChildrenInternal(PlanNodes.vector(children));
        made.copyTagsFrom(plan);
        return made;
    }

    /** The known source of a plan that is nothing but filters of its rows. */
    private static LogicalRelation leafOf(LogicalPlan plan, Planning planning) {
        LogicalPlan leaf = plan;
        while (leaf instanceof Filter && ((Filter) leaf).condition().deterministic()) {
            leaf = ((Filter) leaf).child();
        }
        boolean isKnown = leaf instanceof LogicalRelation && planning.known.containsKey(((LogicalRelation) leaf).relation());
        return isKnown ? (LogicalRelation) leaf : null;
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
        if (!FORMATS.contains(relation.fileFormat().getClass().getSimpleName())
            || !relation.partitionSchema().isEmpty() || source.output().size() != relation.dataSchema().size()) {
            return false;
        }
        String corrupt = relation.sparkSession().conf().get("spark.sql.columnNameOfCorruptRecord");
        boolean partly = "true".equals(relation.sparkSession().conf().get("spark.sql.json.enablePartialResults", "true"));
        Iterator options = relation.options().iterator();
        while (options.hasNext()) {
            Tuple2 option = (Tuple2) options.next();
            String name = ((String) option._1()).toLowerCase();
            String value = ((String) option._2()).toLowerCase();
            if (name.equals("mode") && !value.equals("permissive") || name.equals("enforceschema") && !value.equals("true")
                || name.startsWith("ignorecorruptfiles") || name.startsWith("ignoremissingfiles")) {
                return false;
            }
            corrupt = name.equals("columnnameofcorruptrecord") ? (String) option._2() : corrupt;
        }
        boolean isJson = relation.fileFormat().getClass().getSimpleName().equals("JsonFileFormat");
        return !Arrays.asList(relation.dataSchema().fieldNames()).contains(corrupt) && (partly || !isJson);
    }

    /** Whether a query asks of its rows from which file they are: kept ones do not know. */
    private static boolean asksForFiles(LogicalPlan plan) {
        Iterator parts = plan.expressions().iterator();
        boolean found = false;
        while (parts.hasNext() && !found) {
            found = asksForFiles((Expression) parts.next());
        }
        parts = plan.children().iterator();
        while (parts.hasNext() && !found) {
            found = asksForFiles((LogicalPlan) parts.next());
        }
        return found;
    }

    private static boolean asksForFiles(Expression expression) {
        boolean found = expression.getClass().getSimpleName().startsWith("InputFile");
        Iterator children = expression.children().iterator();
        while (children.hasNext() && !found) {
            found = asksForFiles((Expression) children.next());
        }
        return found;
    }

    /** A source under filters, perhaps a projection, perhaps an aggregate. */
    private static class Narrow {
        private final LogicalPlan rows;
        private final Project project;
        private final Aggregate aggregate;
        private final LogicalRelation leaf;

        Narrow(LogicalPlan rows, Project project, Aggregate aggregate, LogicalRelation leaf) {
            this.rows = rows;
            this.project = project;
            this.aggregate = aggregate;
            this.leaf = leaf;
        }

        LogicalPlan over(Planning planning, boolean stops) throws Exception {
            Source source = (Source) planning.known.get(leaf.relation());
            source.isReadWhole |= !stops;
            LogicalPlan whole = aggregate != null ? aggregate : project != null ? (LogicalPlan) project : rows;
            if (!isServable()) {
                return whole;
            }
            Kept known = source.filling != null ? source.filling : planning.rule.keptOf(source.key);
            LinkedHashMap computed = new LinkedHashMap();
            LinkedHashMap checks = new LinkedHashMap();
            findComputed(computed, checks);
            LogicalPlan made = known == null ? null : read(known, known.those(both(computed, checks), leaf));
            boolean lacks = made == null || !known.hasAll(computed, leaf);
            boolean needs = !computed.isEmpty() || !needed(computed).isEmpty();
            if (lacks && needs && !stops && source.filling == null) {
                Map wanted = both(computed, withoutRead(checks, needed(both(computed, checks))));
                Kept only = new Kept(leaf, null, needed(wanted), wanted);
                ArrayList lacking = new ArrayList(only.slots);
                lacking.removeAll(known == null ? new ArrayList() : known.slots);
                Kept filling = new Kept(leaf, known, needed(wanted), wanted);
                filling = filling.share() <= source.share ? filling : only;
                if (filling.share() <= source.share && planning.rule.isSeen(source.key, lacking)) {
                    filling.plan(planning, source);
                    source.filling = filling;
                    return read(filling, wanted);
                }
                source.parsed.addAll(lacking);
            }
            source.isRead |= made != null;
            return made == null ? whole : made;
        }

        /**
         * Of malformed JSON nothing may be known, and Spark leaves a row as soon as one of its fields fails a filter,
         * before it sees that. Such a row is all null where it is parsed as a whole: no filter may let it pass.
         */
        private boolean isServable() {
            if (!relationOf(leaf).fileFormat().getClass().getSimpleName().equals("JsonFileFormat")) {
                return true;
            }
            LogicalPlan each = rows;
            while (each instanceof Filter) {
                if (mayPassNulls(((Filter) each).condition())) {
                    return false;
                }
                each = ((Filter) each).child();
            }
            return true;
        }

        private static boolean mayPassNulls(Expression expression) {
            boolean found = LET_NULLS_PASS.contains(expression.getClass().getSimpleName());
            Iterator children = expression.children().iterator();
            while (children.hasNext() && !found) {
                found = mayPassNulls((Expression) children.next());
            }
            return found;
        }

        private boolean isPassedOn() {
            Iterator each = project.projectList().iterator();
            while (each.hasNext()) {
                if (!(each.next() instanceof Attribute)) {
                    return false;
                }
            }
            return true;
        }

        private static Map both(Map one, Map other) {
            LinkedHashMap found = new LinkedHashMap(one);
            found.putAll(other);
            return found;
        }

        /** The checks of columns that are not read besides. */
        private Map withoutRead(Map checks, List positions) {
            LinkedHashMap found = new LinkedHashMap(checks);
            for (int i = 0; i < positions.size(); i++) {
                Object column = leaf.output().apply(((Integer) positions.get(i)).intValue());
                java.util.Iterator each = checks.keySet().iterator();
                while (each.hasNext()) {
                    Expression check = (Expression) each.next();
                    if (check.children().contains(column)) {
                        found.remove(check);
                    }
                }
            }
            return found;
        }

        /**
         * The costly expressions of the source's columns alone that cannot raise, each with the column that it becomes,
         * and the checks of texts for null, which Spark adds to them.
         */
        private void findComputed(Map found, Map checks) throws Exception {
            LogicalPlan each = rows;
            while (each instanceof Filter) {
                addComputed(((Filter) each).condition(), found, checks);
                each = ((Filter) each).child();
            }
            if (project != null) {
                addComputed(project.expressions(), found, checks);
            }
            if (aggregate != null && (project == null || isPassedOn())) {
                addComputed(aggregate.expressions(), found, checks);
            }
        }

        private void addComputed(scala.collection.Seq expressions, Map found, Map checks) throws Exception {
            Iterator each = expressions.iterator();
            while (each.hasNext()) {
                addComputed((Expression) each.next(), found, checks);
            }
        }

        private void addComputed(Expression expression, Map found, Map checks) throws Exception {
            if (expression instanceof IsNotNull && ((IsNotNull) expression).child() instanceof Attribute
                && ((IsNotNull) expression).child().dataType() instanceof StringType
                && expression.references().subsetOf(leaf.outputSet())) {
                checks.put(expression, attribute("computed", expression));
                return;
            }
            if (isCostly(expression) && expression.deterministic() && !expression.references().isEmpty()
                && expression.references().subsetOf(leaf.outputSet()) && isTotalThroughout(expression)) {
                if (!found.containsKey(expression)) {
                    found.put(expression, attribute("computed", expression));
                }
                return;
            }
            addComputed(expression.children(), found, checks);
        }

        private static boolean isCostly(Expression expression) {
            boolean ofText = expression instanceof Cast
                && ((Cast) expression).child().dataType() instanceof StringType
                && !(expression.dataType() instanceof StringType);
            return ofText || COSTLY.contains(expression.getClass().getSimpleName());
        }

        private static boolean isTotalThroughout(Expression expression) throws Exception {
            if (expression instanceof LambdaFunction || expression instanceof SubqueryExpression
                || expression instanceof AggregateExpression || expression instanceof AggregateFunction
                || !TotalExpressions.isTotal(expression)) {
                return false;
            }
            Iterator children = expression.children().iterator();
            while (children.hasNext()) {
                if (!isTotalThroughout((Expression) children.next())) {
                    return false;
                }
            }
            return true;
        }

        /** The positions of the source's columns that are needed if some expressions are there already. */
        private List needed(Map computed) {
            HashSet found = new HashSet();
            LogicalPlan each = rows;
            while (each instanceof Filter) {
                addNeeded(((Filter) each).condition(), computed, found);
                each = ((Filter) each).child();
            }
            if (project != null) {
                addNeeded(project.expressions(), computed, found);
            } else if (aggregate != null) {
                addNeeded(aggregate.expressions(), computed, found);
            } else {
                addNeeded(leaf.output(), computed, found);
            }
            ArrayList positions = new ArrayList();
            for (int i = 0; i < leaf.output().size(); i++) {
                if (found.contains(((Attribute) leaf.output().apply(i)).exprId())) {
                    positions.add(Integer.valueOf(i));
                }
            }
            return positions;
        }

        private void addNeeded(scala.collection.Seq expressions, Map computed, HashSet found) {
            Iterator each = expressions.iterator();
            while (each.hasNext()) {
                addNeeded((Expression) each.next(), computed, found);
            }
        }

        private void addNeeded(Expression expression, Map computed, HashSet found) {
            if (computed.containsKey(expression)) {
                return;
            }
            if (expression instanceof Attribute) {
                boolean isUnused = project != null && aggregate != null && isPassedOn()
                    && !stillRead((Attribute) expression, aggregate.expressions(), computed)
                    && !isFiltered((Attribute) expression, computed);
                if (!isUnused) {
                    found.add(((Attribute) expression).exprId());
                }
            }
            addNeeded(expression.children(), computed, found);
        }

        private boolean isFiltered(Attribute attribute, Map computed) {
            LogicalPlan each = rows;
            while (each instanceof Filter) {
                if (stillReads(attribute, ((Filter) each).condition(), computed)) {
                    return true;
                }
                each = ((Filter) each).child();
            }
            return false;
        }

        private static boolean stillRead(Attribute attribute, scala.collection.Seq expressions, Map computed) {
            Iterator each = expressions.iterator();
            while (each.hasNext()) {
                if (stillReads(attribute, (Expression) each.next(), computed)) {
                    return true;
                }
            }
            return false;
        }

        private static boolean stillReads(Attribute attribute, Expression expression, Map computed) {
            if (computed.containsKey(expression)) {
                return false;
            }
            boolean isItself = expression instanceof Attribute
                && ((Attribute) expression).exprId().equals(attribute.exprId());
            return isItself || stillRead(attribute, expression.children(), computed);
        }

        /** The plan over kept rows; null if they lack a column. */
        private LogicalPlan read(Kept from, Map computed) {
            List positions = needed(computed);
            if (!from.hasColumns(positions)) {
                return null;
            }
            LogicalPlan made = from.rows(leaf, computed);
            ArrayList filters = new ArrayList();
            LogicalPlan each = rows;
            while (each instanceof Filter) {
                filters.add(each);
                each = ((Filter) each).child();
            }
            for (int i = filters.size() - 1; i >= 0; i--) {
                made = new Filter((Expression) with(((Filter) filters.get(i)).condition(), computed), made);
            }
            if (project != null) {
                made = projected(made, computed);
            } else if (aggregate == null) {
                made = new Project(leaf.output(), made);  // nobody above expects more
            }
            if (aggregate != null) {
                ArrayList child = new ArrayList();
                child.add(made);
                LogicalPlan over = withChildren(aggregate, child);
                made = computed.isEmpty() ? over : (LogicalPlan) over.transformExpressionsDown(new Computed(computed));
                made.copyTagsFrom(aggregate);
            }
            return made;
        }

        private LogicalPlan projected(LogicalPlan below, Map computed) {
            ArrayList list = new ArrayList();
            boolean passes = aggregate != null && isPassedOn();
            Iterator each = project.projectList().iterator();
            while (each.hasNext()) {
                Expression one = (Expression) each.next();
                if (!passes || stillRead((Attribute) one, aggregate.expressions(), computed)) {
                    list.add(with(one, computed));
                }
            }
            if (passes) {
                java.util.Iterator attributes = computed.values().iterator();
                while (attributes.hasNext()) {
                    list.add(attributes.next());
                }
            }
            Project made = new Project(PlanNodes.vector(list), below);
            made.copyTagsFrom(project);
            return made;
        }

        private static Object with(Expression expression, Map computed) {
            return computed.isEmpty() ? expression : expression.transformDown(new Computed(computed));
        }
    }

    private static AttributeReference attribute(String name, Expression value) {
        return new AttributeReference(
            name, value.dataType(), value.nullable(), org.apache.spark.sql.types.Metadata$.MODULE$.empty(),
            NamedExpression$.MODULE$.newExprId(), (scala.collection.immutable.Seq) (Object) Nil$.MODULE$);
    }

    /** Columns of one source: those of its files, by position, and computed ones, by expression. */
    public static class Kept {
        private final LogicalRelation leaf;
        InMemoryRelation relation;
        /** For each column of the relation: an Integer, or an expression over normalised columns. */
        private final ArrayList slots = new ArrayList();
        /** The expressions as they are computed, by those of the slots, which may be no more than equal to them. */
        private final HashMap values = new HashMap();

        /** What a query needs, and what is kept already. */
        Kept(LogicalRelation leaf, Kept before, List positions, Map computed) {
            this.leaf = leaf;
            slots.addAll(positions);
            java.util.Iterator each = computed.keySet().iterator();
            while (each.hasNext()) {
                Expression expression = (Expression) each.next();
                slots.add(normalised(expression, leaf));
                values.put(normalised(expression, leaf), expression.transformDown(new Numbered(leaf)));
            }
            for (int i = 0; before != null && i < before.slots.size(); i++) {
                Object slot = before.slots.get(i);
                if (!slots.contains(slot)) {
                    slots.add(slot);
                    values.put(slot, before.values.get(slot));
                }
            }
        }

        /** How many columns these are, as a share of the source's. */
        double share() {
            return (double) slots.size() / Math.max(leaf.output().size(), slots.size());
        }

        /** Has them kept while a query reads them. */
        void plan(Planning planning, Source source) {
            ArrayList columns = new ArrayList();
            for (int i = 0; i < slots.size(); i++) {
                Expression value = (Expression) values.get(slots.get(i));
                if (value == null) {
                    columns.add(leaf.output().apply(((Integer) slots.get(i)).intValue()));
                } else {
                    columns.add(new Alias(
                        (Expression) value.transformDown(new Bound(leaf)), "computed", NamedExpression$.MODULE$.newExprId(),
                        Nil$.MODULE$, scala.Option.empty(), Nil$.MODULE$));
                }
            }
            LogicalPlan query = new Project(PlanNodes.vector(columns), leaf);
            query.setAnalyzed();
            relation = InMemoryRelation$.MODULE$.apply(
                planning.level, planning.state.executePlan(query, CommandExecutionMode$.MODULE$.SKIP()),
                new scala.Some(source.name));
        }

        private static Expression normalised(Expression expression, LogicalRelation leaf) {
            return QueryPlan$.MODULE$.normalizeExpressions(expression, package$.MODULE$.AttributeSeq(leaf.output()));
        }

        boolean hasAll(Map computed, LogicalRelation leaf) {
            return those(computed, leaf).size() == computed.size();
        }

        boolean hasColumns(List positions) {
            return slots.containsAll(positions);
        }

        /** Those of some expressions that are kept. */
        Map those(Map computed, LogicalRelation leaf) {
            LinkedHashMap found = new LinkedHashMap();
            java.util.Iterator each = computed.entrySet().iterator();
            while (each.hasNext()) {
                Map.Entry one = (Map.Entry) each.next();
                if (slots.contains(normalised((Expression) one.getKey(), leaf))) {
                    found.put(one.getKey(), one.getValue());
                }
            }
            return found;
        }

        /** The rows under the columns of a query. */
        InMemoryRelation rows(LogicalRelation leaf, Map computed) {
            HashMap attributes = new HashMap();
            java.util.Iterator each = computed.entrySet().iterator();
            while (each.hasNext()) {
                Map.Entry one = (Map.Entry) each.next();
                attributes.put(normalised((Expression) one.getKey(), leaf), one.getValue());
            }
            ArrayList output = new ArrayList();
            for (int i = 0; i < slots.size(); i++) {
                Object slot = slots.get(i);
                if (slot instanceof Integer) {
                    output.add(leaf.output().apply(((Integer) slot).intValue()));
                } else {
                    Object known = attributes.get(slot);
                    output.add(known != null ? known : attribute("computed", (Expression) slot));
                }
            }
            return relation.withOutput(PlanNodes.vector(output));
        }
    }

    /** A query that is planned: what may be kept of its sources, and what is. */
    public static class Planning {
        final SourceColumns rule;
        final IdentityHashMap known = new IdentityHashMap();
        final ArrayList sources = new ArrayList();
        SessionState state;
        StorageLevel level;
        boolean isBusy = false;

        Planning(SourceColumns rule) {
            this.rule = rule;
        }

        /**
         * Make a source known, by the key of its rows.
         *
         * @param share how many of its columns, as a share of all, may be kept while the query reads them
         */
        public void know(LogicalRelation leaf, String key, String name, double share) {
            Source source = new Source(key, name, share);
            known.put(leaf.relation(), source);
            sources.add(source);
        }

        /** On which session it is planned, and where columns are kept. */
        public void on(SessionState state, StorageLevel level) {
            this.state = state;
            this.level = level;
            scala.collection.Seq rules = state.experimentalMethods().extraOptimizations();
            if (!rules.contains(rule)) {
                ArrayList all = new ArrayList();
                PlanLeaves.addAll(all, rules.iterator());
                all.add(rule);
                state.experimentalMethods().extraOptimizations_$eq(
                    (scala.collection.immutable.Seq) (Object) PlanNodes.vector(all));
            }
        }

        /** Whether it reads kept columns of a source, by its number, or keeps them. */
        public boolean reads(int number) {
            return ((Source) sources.get(number)).isRead;
        }

        /** Whether it surely reads all of a source; null if it was not planned here. */
        public Boolean readsWhole(int number) {
            return state == null ? null : Boolean.valueOf(((Source) sources.get(number)).isReadWhole);
        }

        /** Note what it has read of a source from its files. */
        public void note(int number) {
            rule.see(((Source) sources.get(number)).key, ((Source) sources.get(number)).parsed);
        }

        /** What it keeps of a source; null if that is nothing. */
        public InMemoryRelation keeps(int number) {
            Kept filling = ((Source) sources.get(number)).filling;
            return filling == null ? null : filling.relation;
        }

        /** How many of its columns these are, as a share of all. */
        public double share(int number) {
            return ((Source) sources.get(number)).filling.share();
        }

        /** Let later queries read what it has kept of a source. */
        public void hand(int number) {
            Source source = (Source) sources.get(number);
            rule.keep(source.key, source.filling);
        }

        /** The relations whose rows it keeps or reads. */
        public InMemoryRelation[] relations() {
            ArrayList found = new ArrayList();
            for (int i = 0; i < sources.size(); i++) {
                Source source = (Source) sources.get(i);
                Kept one = source.filling != null ? source.filling : rule.keptOf(source.key);
                if (one != null) {
                    found.add(one.relation);
                }
            }
            return (InMemoryRelation[]) found.toArray(new InMemoryRelation[0]);
        }
    }

    /** A source of a query. */
    static class Source {
        final String key;
        final String name;
        final double share;
        final ArrayList parsed = new ArrayList();
        Kept filling;
        boolean isRead = false;
        boolean isReadWhole = false;

        Source(String key, String name, double share) {
            this.key = key;
            this.name = name;
            this.share = share;
        }
    }

    /** Expressions, each as the column that holds it. */
    static class Computed extends AbstractPartialFunction {
        private final Map columns;

        Computed(Map columns) {
            this.columns = columns;
        }

        public boolean isDefinedAt(Object expression) {
            return columns.containsKey(expression);
        }

        public Object applyOrElse(Object expression, Function1 otherwise) {
            return isDefinedAt(expression) ? columns.get(expression) : otherwise.apply(expression);
        }
    }

    /** The columns of a source, by their positions. */
    static class Numbered extends AbstractPartialFunction {
        private final LogicalRelation leaf;

        Numbered(LogicalRelation leaf) {
            this.leaf = leaf;
        }

        public boolean isDefinedAt(Object expression) {
            return expression instanceof AttributeReference;
        }

        public Object applyOrElse(Object expression, Function1 otherwise) {
            if (!isDefinedAt(expression)) {
                return otherwise.apply(expression);
            }
            AttributeReference column = (AttributeReference) expression;
            int position = 0;
            while (!((Attribute) leaf.output().apply(position)).exprId().equals(column.exprId())) {
                position++;
            }
            return column.withExprId(new ExprId((long) position, NamedExpression$.MODULE$.jvmId()));
        }
    }

    /** Numbered columns, as those of a source. */
    static class Bound extends AbstractPartialFunction {
        private final LogicalRelation leaf;

        Bound(LogicalRelation leaf) {
            this.leaf = leaf;
        }

        public boolean isDefinedAt(Object expression) {
            return expression instanceof AttributeReference;
        }

        public Object applyOrElse(Object expression, Function1 otherwise) {
            if (!isDefinedAt(expression)) {
                return otherwise.apply(expression);
            }
            return leaf.output().apply((int) ((AttributeReference) expression).exprId().id());
        }
    }
}
