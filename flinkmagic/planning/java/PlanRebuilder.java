package flinkmagic.planning;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

import flinkmagic.jvm.Reflect;
import org.apache.spark.Dependency;
import org.apache.spark.MapOutputStatistics;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.BaseSubqueryExec;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.ReusedSubqueryExec;
import org.apache.spark.sql.execution.ShufflePartitionSpec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SubqueryExec;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.columnar.InMemoryRelation$;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.exchange.Exchange;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;
import org.apache.spark.storage.StorageLevel;
import scala.Function1;
import scala.Option;
import scala.collection.JavaConverters;
import scala.collection.Seq;
import scala.collection.immutable.Nil$;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * Makes the plans that run from the plans that were read: equal exchanges and subqueries become one, and an operator
 * whose shuffle is not in the plan is replaced by the rows behind that shuffle.
 *
 * Every node is rebuilt once, so that an exchange is one object (and one shuffle id) in all plans of the job.
 */
public class PlanRebuilder {
    /** Of the plan of rows that exist elsewhere: what returns some columns of them. */
    private static final TreeNodeTag COLUMNS = new TreeNodeTag("flinkmagic.columns");

    private static final ClassTag ANY = ClassTag$.MODULE$.Any();

    private final IdentityHashMap<SparkPlan, SparkPlan> standsFor = new IdentityHashMap<SparkPlan, SparkPlan>();
    private final IdentityHashMap<SparkPlan, Object> hidden = new IdentityHashMap<SparkPlan, Object>();
    private final IdentityHashMap<SparkPlan, SparkPlan> made = new IdentityHashMap<SparkPlan, SparkPlan>();
    private final IdentityHashMap<CachedRDDBuilder, CachedRDDBuilder> kept = new IdentityHashMap<CachedRDDBuilder, CachedRDDBuilder>();
    private final IdentityHashMap<SparkPlan, SparkPlan> pipelined = new IdentityHashMap<SparkPlan, SparkPlan>();
    private final IdentityHashMap<SparkPlan, SparkPlan> writes = new IdentityHashMap<SparkPlan, SparkPlan>();
    private final IdentityHashMap<SparkPlan, SparkPlan> together = new IdentityHashMap<SparkPlan, SparkPlan>();
    private final IdentityHashMap<SparkPlan, List> earlier = new IdentityHashMap<SparkPlan, List>();
    private final IdentityHashMap<SparkPlan, MapOutputStatistics> earlierSizes = new IdentityHashMap<SparkPlan, MapOutputStatistics>();
    private final IdentityHashMap<CachedRDDBuilder, Object[]> formerRows = new IdentityHashMap<CachedRDDBuilder, Object[]>();
    private final IdentityHashMap<SparkPlan, Set> added = new IdentityHashMap<SparkPlan, Set>();
    private final IdentityHashMap<SparkPlan, SparkPlan> without = new IdentityHashMap<SparkPlan, SparkPlan>();
    private final IdentityHashMap<SparkPlan, Integer> since = new IdentityHashMap<SparkPlan, Integer>();
    private final AdaptiveJoins joins = new AdaptiveJoins();
    private final CoalescedReads reads = new CoalescedReads();
    private final IdentityHashMap<SparkPlan, SparkPlan> narrow = new IdentityHashMap<SparkPlan, SparkPlan>();
    private Function1 scans;

    /** What makes the plans that run for scans of files, unless Spark's own do; it learns of scans of cached rows, too. */
    public synchronized void scanBy(Function1 scans) {
        this.scans = scans;
    }

    /** Use the rows of `first` in place of `plan`: two exchanges, or two subqueries. */
    public synchronized void share(SparkPlan plan, SparkPlan first) {
        standsFor.put(plan, first);
    }

    /** Use what an earlier job has computed in place of `plan`: an exchange or a subquery, as it ran there. */
    public synchronized void adopt(SparkPlan plan, SparkPlan computed) {
        standsFor.put(plan, computed);
        made.put(computed, computed);
        if (computed instanceof ShuffleExchangeLike) {
            joins.written((Exchange) computed, null);
        }
    }

    /**
     * Other exchanges of earlier jobs have the former part of an exchange's rows; they are read before its own.
     *
     * @param exchanges as they ran, in order
     * @param sizes what each of them wrote
     */
    public synchronized void follow(SparkPlan plan, List<Exchange> exchanges, List<MapOutputStatistics> sizes) {
        MapOutputStatistics all = (MapOutputStatistics) sizes.get(0);
        for (int i = 1; i < sizes.size(); i++) {
            all = AppendedShuffles.together(all, (MapOutputStatistics) sizes.get(i));
        }
        earlier.put(plan, exchanges);
        earlierSizes.put(plan, all);
    }

    /** Rows that an earlier job has kept are a part of a relation's; its plan makes the rest. */
    public synchronized void follow(InMemoryRelation relation, CachedRDDBuilder former, int partitions) {
        // Asked for when its rows have been released, the builder would keep others in their place.
        formerRows.put(
            relation.cacheBuilder(), new Object[] {former.cachedColumnBuffers(), Integer.valueOf(partitions)});
    }

    /**
     * Operators of the stage below such an exchange run on what was added since.
     *
     * @param scans the files that are read, by the scan
     * @param without operators that have no rows then
     * @param since by the exchange that is read, how many of the former ones to leave out
     */
    public synchronized void append(IdentityHashMap scans, IdentityHashMap without, IdentityHashMap since) {
        added.putAll(scans);
        this.without.putAll(without);
        this.since.putAll(since);
    }

    /** How many tasks the stage below such an exchange has; -1 if as many as planned. */
    public synchronized int addedTasks(SparkPlan plan, int planned) throws Exception {
        int tasks = ((ShuffleExchangeExec) exchange(plan)).shuffleDependency().rdd().getNumPartitions();
        return tasks == planned ? -1 : tasks;
    }

    /** What is used in place of an exchange or a subquery; null if it runs itself. */
    public synchronized SparkPlan standIn(SparkPlan plan) {
        return (SparkPlan) standsFor.get(plan);
    }

    /** The operator that was made for one that was read; null if there is none yet. */
    public synchronized SparkPlan ran(SparkPlan plan) {
        SparkPlan scan = (SparkPlan) narrow.get(plan);
        return scan == null ? (SparkPlan) made.get(plan) : scan;
    }

    /**
     * How many rows of a DataFrame the job has computed, or read; -1 if none of its operators has counted them.
     *
     * @param last the plan of the last stage, as it ran
     */
    public synchronized long rowsOf(SparkPlan last, LogicalPlan frame) {
        long rows = FrameParts.rowsOf(last, frame);
        if (FrameParts.hasOneSource(frame)) {
            // The last stage may read what one before it has left of them.
            for (SparkPlan plan : made.values()) {
                rows = plan instanceof Exchange ? Math.max(rows, FrameParts.rowsOf(plan, frame)) : rows;
            }
        }
        return rows;
    }

    /** Whether this job computes the rows of a relation. */
    public synchronized boolean keeps(InMemoryRelation relation) {
        return kept.containsKey(relation.cacheBuilder());
    }

    /** The consumers of an exchange are to read it while it is written. */
    public synchronized void pipeline(SparkPlan exchange) {
        pipelined.put(exchange, exchange);
    }

    /** The dependency of such an exchange. */
    public synchronized ShuffleDependency pipelinedDependency(SparkPlan plan) throws Exception {
        return PipelinedExchanges.dependency((ShuffleExchangeExec) exchange(plan));
    }

    /** Makes such an exchange again, with what was made over it: Spark never runs one twice. */
    public synchronized void renewPipelined(SparkPlan plan) {
        forget(ran(plan));
    }

    /** A shuffle of this job is written: later stages read it in the way that suits its size. */
    public synchronized void written(SparkPlan plan, MapOutputStatistics own) throws Exception {
        Exchange exchange = exchange(plan);
        MapOutputStatistics former = (MapOutputStatistics) earlierSizes.get(plan);
        MapOutputStatistics statistics = former == null ? own : AppendedShuffles.together(former, own);
        joins.written(exchange, statistics);
        reads.written(exchange, statistics);
    }

    /** How many tasks the stage with this exchange or subquery on top has; -1 if that number is as planned. */
    public synchronized int mergedTasks(SparkPlan plan) {
        return reads.tasks(plan);
    }

    /** The same for the last stage of a query or write; an exchange on top of its plan belongs to the stage before. */
    public synchronized int mergedTasksOfQuery(SparkPlan plan) {
        return isExchange(plan) ? -1 : reads.tasks(plan);
    }

    private static boolean isExchange(SparkPlan plan) {
        return plan instanceof Exchange || plan instanceof ReusedExchangeExec;
    }

    /** How a join runs that was planned otherwise; see `AdaptiveJoins.choice`. */
    public synchronized String joinChoice(SparkPlan plan) {
        return joins.choice(plan);
    }

    /** A whole query or write was planned; call it before any of its stages is made. */
    public synchronized void planned(SparkPlan root, LogicalPlan optimized) {
        joins.plan(root, optimized);
    }

    /** The plan is that of a write, or of the rows that one writes. */
    public synchronized void writes(SparkPlan plan) {
        writes.put(plan, plan);
    }

    /** A write is to run again: rows that it reads may have been kept anew, and a scan holds what it has read. */
    public synchronized void renewWrite(SparkPlan plan) {
        InMemoryTableScanExec scan = MergedRows.scan(plan);
        if (scan != null) {
            forget((SparkPlan) made.get(scan));
            forget((SparkPlan) narrow.remove(scan));
            forget((SparkPlan) together.remove(plan));
        }
        if (!isExchange(plan)) {
            for (SparkPlan child : JavaConverters.asJavaIterable(plan.children())) {
                renewWrite(child);
            }
        }
    }

    /** The plan that runs for that of a whole query or write; always the same object, unless a write is renewed. */
    public synchronized SparkPlan query(SparkPlan plan) throws Exception {
        joins.free(plan);
        if (!isExchange(plan)) {
            mergeReads(plan);
        }
        return input(plan);
    }

    /**
     * A relation for the rows of a query, which Spark's cache does not know, under columns like those of its DataFrame.
     * As a cache of an RDD's rows it knows nothing of their partitions and order: both may change when the query runs.
     */
    public synchronized InMemoryRelation keptApart(
            SparkPlan plan, QueryExecution query, Seq columns, StorageLevel level, String name) throws Exception {
        SparkPlan computed = query(plan);
        ArrayList<Attribute> copies = new ArrayList<Attribute>();
        for (Object column : JavaConverters.seqAsJavaList(columns)) {
            copies.add(((Attribute) column).newInstance());
        }
        Seq output = PlanNodes.vector(copies);
        Option before = enter(computed);
        try {
            RDD rows = computed.execute();
            Object partitioning = new UnknownPartitioning(rows.getNumPartitions());
            SparkPlan scan = (SparkPlan) Reflect.make(RDDScanExec.class, new Object[] {
                output, rows, "ExistingRDD", partitioning, Nil$.MODULE$});
            // The relation holds its logical plan. The query's reads the rows before these, which hold theirs, and so on.
            LogicalPlan logical = (LogicalPlan) Reflect.make(LogicalRDD.class, new Object[] {
                output, rows, partitioning, Nil$.MODULE$, plan.session()});
            InMemoryRelation planned = ExactBatchSerializer.use(
                InMemoryRelation$.MODULE$.apply(level, query, Option.empty()));
            InMemoryRelation kept = InMemoryRelation$.MODULE$.apply(
                planned.cacheBuilder().serializer(), level, scan, Option.empty(), logical);
            kept.cacheBuilder().cachedColumnBuffers().setName(name);
            return kept;
        } finally {
            leave(before);
        }
    }

    /** The same for an operator that makes a shuffle of its own: `computed` is what that job rebuilt from it. */
    public synchronized void adoptHidden(SparkPlan plan, SparkPlan computed) throws Exception {
        Option before = enter(plan);
        try {
            made.put(plan, PlanNodes.scanOver(plan, ((RDDScanExec) computed).rdd(), plan.outputPartitioning()));
        } finally {
            leave(before);
        }
    }

    /** The same for rows that are kept in a relation: the builder that holds them. */
    public synchronized void adoptKept(InMemoryRelation relation, CachedRDDBuilder computed) {
        kept.put(relation.cacheBuilder(), computed);
    }

    /**
     * The builder of a relation's rows if they exist elsewhere, in the partitions and the order in which its plan would
     * compute them: consumers are planned on that. Null if these cannot be those partitions.
     *
     * @param rows all columns of them
     * @param columns returns some columns of them, by their positions
     */
    public synchronized CachedRDDBuilder keptOver(InMemoryRelation relation, RDD rows, Function1 columns)
            throws Exception {
        SparkPlan plan = relation.cacheBuilder().cachedPlan();
        Partitioning partitioning = plan.outputPartitioning();
        boolean isKnown = !(partitioning instanceof UnknownPartitioning);
        if (isKnown && partitioning.numPartitions() != rows.getNumPartitions()) {
            return null;
        }
        Option before = enter(plan);
        try {
            SparkPlan scan = PlanNodes.scanOver(plan, rows, partitioning);
            scan.setTagValue(COLUMNS, columns);
            return PlanNodes.withPlan(relation.cacheBuilder(), scan);
        } finally {
            leave(before);
        }
    }

    /** The exchange that runs for one that was read, or that ran in an earlier job. */
    public synchronized Exchange exchange(SparkPlan plan) throws Exception {
        SparkPlan rebuilt = rebuild(plan);
        return rebuilt instanceof ReusedExchangeExec ? ((ReusedExchangeExec) rebuilt).child() : (Exchange) rebuilt;
    }

    /** `plan` makes a shuffle of its own when it is executed. */
    public synchronized void hide(SparkPlan plan) {
        hidden.put(plan, null);
    }

    /** The plan below a relation is this job's own: it is rebuilt too, and its rows are computed once for all scans. */
    public synchronized void keep(InMemoryRelation relation) {
        kept.put(relation.cacheBuilder(), null);
    }

    /** The relation whose rows this job computes; always over the same rows. */
    public synchronized InMemoryRelation relation(InMemoryRelation planned) throws Exception {
        CachedRDDBuilder builder = (CachedRDDBuilder) kept.get(planned.cacheBuilder());
        if (builder == null) {
            SparkPlan plan = planned.cacheBuilder().cachedPlan();
            builder = PlanNodes.withPlan(planned.cacheBuilder(), isExchange(plan) ? input(plan) : rebuild(plan));
            kept.put(planned.cacheBuilder(), builder);
            Object[] former = (Object[]) formerRows.get(planned.cacheBuilder());
            if (former != null) {
                boolean isKnown = !(plan.outputPartitioning() instanceof UnknownPartitioning);
                AppendedBatches.join((RDD) former[0], builder, ((Integer) former[1]).intValue(), isKnown);
            }
            ArrayList<SparkPlan> leaves = new ArrayList<SparkPlan>();
            if (CoalescedReads.collect(plan, hidden, leaves) && !MergedRows.hidesOrder(plan)) {
                reads.noteSizes(builder.cachedPlan(), inputs(leaves));
            }
        }
        return InMemoryRelation$.MODULE$.apply(
            planned.output(), builder, planned.outputOrdering(), planned.statsOfPlanToCache());
    }

    /** The plan that runs for a plan that was read; always the same object. */
    public synchronized SparkPlan rebuild(SparkPlan plan) throws Exception {
        SparkPlan known = (SparkPlan) made.get(plan);
        if (known == null) {
            Option before = enter(plan);
            try {
                known = hidden.containsKey(plan) ? behindShuffle(plan) : make(plan);
            } finally {
                leave(before);
            }
            made.put(plan, known);
        }
        return known;
    }

    /**
     * A node takes the session that is active on the thread that makes it; a thread that is new to Spark has none. So
     * the plan's session is made the active one while nodes are made.
     */
    public static Option enter(SparkPlan plan) {
        Option before = SparkSession.getActiveSession();
        SparkSession own = plan.session();
        if (own != null) {
            SparkSession.setActiveSession(own);
        }
        return before;
    }

    public static void leave(Option before) {
        if (before.isDefined()) {
            SparkSession.setActiveSession((SparkSession) before.get());
        } else {
            SparkSession.clearActiveSession();
        }
    }

    /** The shuffle that a hidden operator makes; the stages below have run. */
    public synchronized ShuffleDependency shuffleOf(SparkPlan plan) throws Exception {
        RDDScanExec scan = (RDDScanExec) rebuild(plan);
        RDD rdd = scan.rdd();
        while (true) {
            if (rdd.dependencies().isEmpty()) {
                return null;
            }
            Dependency dependency = (Dependency) rdd.dependencies().head();
            if (dependency instanceof ShuffleDependency) {
                return (ShuffleDependency) dependency;
            }
            rdd = dependency.rdd();
        }
    }

    /**
     * Makes a broadcast or a subquery again, with what was made over it: once failed, it stays failed. Nothing over it
     * has run.
     */
    public synchronized void renew(SparkPlan plan) throws Exception {
        SparkPlan failed = rebuild(plan);
        forget(failed);
        Option before = enter(plan);
        try {
            made.put(plan, PlanNodes.copy(failed));
        } finally {
            leave(before);
        }
    }

    private void forget(SparkPlan ran) {
        if (ran == null) {
            return;
        }
        java.util.Iterator<SparkPlan> plans = made.values().iterator();
        while (plans.hasNext()) {
            if (PlanNodes.holds((SparkPlan) plans.next(), ran)) {
                plans.remove();
            }
        }
    }

    private SparkPlan make(SparkPlan plan) throws Exception {
        if (without.containsKey(plan)) {
            return PlanNodes.scanOver(plan, SparkContext.getOrCreate().emptyRDD(ANY), new UnknownPartitioning(0));
        }
        SparkPlan first = (SparkPlan) standsFor.get(plan);
        if (first != null && plan instanceof Exchange) {
            return new ReusedExchangeExec(plan.output(), exchange(first));
        }
        if (first != null) {
            return new ReusedSubqueryExec((BaseSubqueryExec) rebuild(first));
        }
        if (plan instanceof ReusedExchangeExec) {
            Exchange child = exchange(((ReusedExchangeExec) plan).child());
            return child == ((ReusedExchangeExec) plan).child() ? plan : new ReusedExchangeExec(plan.output(), child);
        }
        if (plan instanceof ReusedSubqueryExec) {
            SparkPlan child = rebuild((SparkPlan) ((ReusedSubqueryExec) plan).child());
            if (child == ((ReusedSubqueryExec) plan).child()) {
                return plan;
            }
            return child instanceof ReusedSubqueryExec ? child : new ReusedSubqueryExec((BaseSubqueryExec) child);
        }
        if (added.containsKey(plan)) {
            return AddedFiles.scan((FileSourceScanExec) plan, (Set) added.get(plan));
        }
        if (scans != null && plan instanceof FileSourceScanExec) {
            return (SparkPlan) scans.apply(plan);
        }
        if (plan instanceof InMemoryTableScanExec) {
            InMemoryTableScanExec scan = (InMemoryTableScanExec) plan;
            if (scans != null) {
                scans.apply(plan);
            }
            if (kept.containsKey(scan.relation().cacheBuilder())) {
                plan = new InMemoryTableScanExec(scan.attributes(), scan.predicates(), relation(scan.relation()));
                plan.copyTagsFrom(scan);
            }
        }
        if (plan instanceof Exchange || plan instanceof SubqueryExec) {
            mergeReads(plan);
        }
        joins.descend(plan);
        SparkPlan rebuilt = joins.choose(plan, withNewSubqueries(withNewChildren(plan)));
        SparkPlan held = DriverRows.broadcastAlone(rebuilt);
        if (held != null) {
            return held;
        }
        return pipelined.containsKey(plan) ? PipelinedExchanges.of(rebuilt) : rebuilt;
    }

    /** For a stage whose top operator is an exchange, a subquery, or the plan of a query or write. */
    private void mergeReads(SparkPlan top) throws Exception {
        ArrayList<SparkPlan> leaves = new ArrayList<SparkPlan>();
        boolean isExchange = top instanceof Exchange;
        boolean isWrite = writes.containsKey(top);
        if (made.containsKey(top) || !CoalescedReads.isEnabled(top)) {
            return;
        }
        SparkPlan last = isExchange ? (SparkPlan) top.children().head() : top;
        if (CoalescedReads.collect(last, hidden, leaves)) {
            reads.decide(top, leaves, inputs(leaves), isWrite);
        }
    }

    /** The exchanges that run for planned ones; for scans of kept rows the plans of these. */
    private ArrayList<SparkPlan> inputs(ArrayList<SparkPlan> leaves) throws Exception {
        ArrayList<SparkPlan> inputs = new ArrayList<SparkPlan>();
        for (SparkPlan leaf : leaves) {
            InMemoryTableScanExec scan = MergedRows.scan(leaf);
            inputs.add(scan == null ? (SparkPlan) exchange(leaf) : made(scan).relation().cacheBuilder().cachedPlan());
        }
        return inputs;
    }

    private InMemoryTableScanExec made(InMemoryTableScanExec scan) throws Exception {
        return (InMemoryTableScanExec) rebuild(scan);
    }

    /** A planned scan of kept rows, as a task of several partitions reads them. */
    private SparkPlan together(SparkPlan leaf, ShufflePartitionSpec[] specs) throws Exception {
        SparkPlan known = (SparkPlan) together.get(leaf);
        if (known == null) {
            InMemoryTableScanExec planned = MergedRows.scan(leaf);
            Option before = enter(leaf);
            try {
                made.put(planned, MergedRows.withOrder(made(planned)));
                known = MergedRows.together(made(planned), MergedRows.columns(planned), specs);
            } finally {
                leave(before);
            }
            together.put(leaf, known);
        }
        return known;
    }

    /** An input, as its consumer reads it. */
    private SparkPlan input(SparkPlan child) throws Exception {
        ShufflePartitionSpec[] specs = reads.of(child);
        ArrayList<Exchange> parts = without.containsKey(child) ? null : parts(child);
        if (specs == null && parts == null) {
            SparkPlan scan = narrow(child);
            return scan == null ? rebuild(child) : scan;
        }
        if (MergedRows.scan(child) != null) {
            return together(child, specs);
        }
        if (parts == null) {
            parts = new ArrayList<Exchange>();
            parts.add(exchange(child));
        }
        Partitioning partitioning = specs == null ? child.outputPartitioning() : new UnknownPartitioning(specs.length);
        SparkPlan scan = PlanNodes.scanOver(child, AppendedShuffles.rows(parts, specs), partitioning);
        joins.standsFor(scan, parts);
        return scan;
    }

    /**
     * A planned scan of at most half of the columns of kept rows, by their widths, which are not in memory: they are
     * read where they exist. Null if it is none. Whatever reads more columns has all of them kept.
     */
    private SparkPlan narrow(SparkPlan leaf) throws Exception {
        InMemoryTableScanExec planned = MergedRows.scan(leaf);
        CachedRDDBuilder builder = planned == null ? null : (CachedRDDBuilder) kept.get(planned.relation().cacheBuilder());
        if (builder == null || builder.isCachedColumnBuffersLoaded()) {
            return null;
        }
        Option columns = builder.cachedPlan().getTagValue(COLUMNS);
        int[] asked = columns.isEmpty() ? null : MergedRows.positions(planned);
        if (asked == null || 2 * MergedRows.width(planned.output()) > MergedRows.width(planned.relation().output())) {
            return null;
        }
        SparkPlan scan = (SparkPlan) narrow.get(planned);
        if (scan == null) {
            Option before = enter(leaf);
            try {
                RDD rows = (RDD) ((Function1) columns.get()).apply(asked);
                scan = PlanNodes.scanOver(planned, rows, planned.outputPartitioning());
            } finally {
                leave(before);
            }
            narrow.put(planned, scan);
        }
        return new InputAdapter(scan);  // an operator above may be one of generated code
    }

    /** The exchanges that have the rows of one, as a consumer reads it; null if it is one. */
    private ArrayList<Exchange> parts(SparkPlan child) throws Exception {
        SparkPlan first = child;
        while (first != null && !earlier.containsKey(first)) {
            first = first instanceof ReusedExchangeExec
                ? (SparkPlan) ((ReusedExchangeExec) first).child() : (SparkPlan) standsFor.get(first);
        }
        if (first == null) {
            return null;
        }
        ArrayList<Exchange> parts = new ArrayList<Exchange>((List) earlier.get(first));
        parts.add(exchange(first));
        Integer left = (Integer) since.get(child);
        return left == null ? parts : new ArrayList<Exchange>(parts.subList(left.intValue(), parts.size()));
    }

    private SparkPlan withNewChildren(SparkPlan plan) throws Exception {
        ArrayList<SparkPlan> children = new ArrayList<SparkPlan>();
        for (SparkPlan child : JavaConverters.asJavaIterable(plan.children())) {
            children.add(input(child));
        }
        return (SparkPlan) PlanNodes.withChildren(plan, children);
    }

    /** In two steps through a wrapper: transformExpressions, too, keeps expressions that are equal. */
    private SparkPlan withNewSubqueries(SparkPlan plan) throws Exception {
        IdentityHashMap<SparkPlan, SparkPlan> wrapped = new IdentityHashMap<SparkPlan, SparkPlan>();
        IdentityHashMap<SparkPlan, SparkPlan> unwrapped = new IdentityHashMap<SparkPlan, SparkPlan>();
        for (SparkPlan subquery : JavaConverters.asJavaIterable(plan.subqueries())) {
            SparkPlan rebuilt = rebuild(subquery);
            if (rebuilt != subquery) {
                SparkPlan wrapper = new ReusedSubqueryExec(new ReusedSubqueryExec((BaseSubqueryExec) rebuilt));
                wrapped.put(subquery, wrapper);
                unwrapped.put(wrapper, rebuilt);
            }
        }
        if (wrapped.isEmpty()) {
            return plan;
        }
        return (SparkPlan) PlanNodes.withNewSubqueryPlans(PlanNodes.withNewSubqueryPlans(plan, wrapped), unwrapped);
    }

    private SparkPlan behindShuffle(SparkPlan plan) throws Exception {
        return PlanNodes.scanOver(plan, make(plan).execute(), plan.outputPartitioning());
    }
}
