package flinkmagic.planning;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.TreeSet;

import flinkmagic.jvm.Reflect;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.optimizer.EliminateResolvedHint$;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ResolvedHint;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.columnar.InMemoryRelation$;
import org.apache.spark.storage.StorageLevel;
import scala.collection.JavaConverters;

/**
 * The DataFrames of a program inside each other's analysed plans, and those plans with some of them cut out.
 *
 * A DataFrame's plan is recognised by identity: Spark puts the very object into the plans that are made from it. The
 * exception is a self-join, in which Spark gives one side's plan other expression ids; such a copy has the same
 * canonical form over the very same leaves. A DataFrame with merely the same definition is another one: its files may
 * have been listed at another time.
 *
 * What the user has cached is left whole: with something cut out of it, Spark would not recognise it.
 */
public class LogicalCuts {
    private final IdentityHashMap frames = new IdentityHashMap();
    private final HashMap<Object, ArrayList> framesByShape = new HashMap<Object, ArrayList>();
    private final IdentityHashMap<LogicalPlan, Integer> copies = new IdentityHashMap<LogicalPlan, Integer>();
    private final IdentityHashMap<LogicalPlan, Boolean> cached = new IdentityHashMap<LogicalPlan, Boolean>();
    private final IdentityHashMap<LogicalPlan, TreeSet<Integer>> inside =
        new IdentityHashMap<LogicalPlan, TreeSet<Integer>>();
    private final HashMap<Integer, InMemoryRelation> relations = new HashMap<Integer, InMemoryRelation>();
    private final HashMap<Integer, Selection> selections = new HashMap<Integer, Selection>();
    private Selection selecting;
    private IdentityHashMap<LogicalPlan, LogicalPlan> rewritten = new IdentityHashMap<LogicalPlan, LogicalPlan>();
    private CacheManager cache;
    private Object session;

    /** The Java session that will plan; what its cache holds is left whole. */
    public void open(Object session, CacheManager cache) {
        this.session = session;
        this.cache = cache.isEmpty() ? null : cache;
    }

    /** Whether the user keeps rows in memory: RDDs, or the rows of cached DataFrames. */
    public boolean userKeepsRows(SparkContext sc) {
        for (RDD rdd : JavaConverters.asJavaIterable(sc.getPersistentRDDs().values())) {
            boolean isCheckpoint = rdd.isLocallyCheckpointed();  // the rows of supersteps, too: they lose nothing on disk
            boolean isOurs = rdd.name() != null && PlanLeaves.isOfRun(rdd.name());
            if (rdd.getStorageLevel().useMemory() && !isCheckpoint && !isOurs) {
                return true;
            }
        }
        return false;
    }

    /** The same for some plans; their numbers in order, with blanks between them. */
    public String frames(List plans) {
        StringBuilder numbers = new StringBuilder();
        for (Object plan : plans) {
            numbers.append(frame((LogicalPlan) plan)).append(' ');
        }
        return numbers.toString();
    }

    /** Registers a DataFrame's analysed plan; returns its number, an earlier one's if the plan is the same. */
    public int frame(LogicalPlan plan) {
        Integer known = (Integer) frames.get(plan);
        if (known == null) {
            known = Integer.valueOf(frames.size());
            frames.put(plan, known);
            ArrayList alike = (ArrayList) framesByShape.get(shape(plan));
            if (alike == null) {
                alike = new ArrayList();
                framesByShape.put(shape(plan), alike);
            }
            alike.add(plan);
        }
        return known.intValue();
    }

    /**
     * The numbers of the known DataFrames that are met first on the way down a plan, with blanks between them.
     *
     * @param orItself whether the plan may be such a DataFrame's itself; else what is below it is asked for
     */
    public String directlyInside(LogicalPlan plan, boolean orItself) throws Exception {
        TreeSet<Integer> found = new TreeSet<Integer>();
        if (orItself) {
            found.addAll(metFirst(plan));
        } else {
            for (LogicalPlan part : PlanLeaves.parts(plan)) {
                found.addAll(metFirst(part));
            }
        }
        StringBuilder numbers = new StringBuilder();
        for (Integer number : found) {
            numbers.append(number).append(' ');
        }
        return numbers.toString();
    }

    /**
     * The rows of a planned DataFrame, as something to plan its consumers on. Nothing is computed, and Spark's cache
     * does not know of it: it is made for those plans alone. Its name makes it unequal to all others.
     */
    public InMemoryRelation relation(
            QueryExecution execution, LogicalPlan plan, String name, StorageLevel level) throws Exception {
        InMemoryRelation made = InMemoryRelation$.MODULE$.apply(level, execution, new scala.Some(name));
        return ExactBatchSerializer.use(made).withOutput(plan.output());
    }

    /** From now on the DataFrame is read from a relation. */
    public void cut(int frame, InMemoryRelation relation) {
        relations.put(Integer.valueOf(frame), relation);
        rewritten = new IdentityHashMap();
    }

    /** From now on the DataFrame is not read from a relation. */
    public void uncut(int frame) {
        relations.remove(Integer.valueOf(frame));
        rewritten = new IdentityHashMap();
    }

    /** A DataFrame has some of another's rows: where these are read for it, the scan's columns say which. */
    public void select(int frame, int parent, String which) {
        selections.put(Integer.valueOf(frame), new Selection(Integer.valueOf(parent), which));
        rewritten = new IdentityHashMap();
    }

    /**
     * A plan in which the DataFrames that were cut are read from their relations.
     *
     * @param orItself whether the plan may be such a DataFrame's itself
     */
    public LogicalPlan rewrite(LogicalPlan plan, boolean orItself) throws Exception {
        if (relations.isEmpty()) {
            return plan;
        }
        LogicalPlan made = orItself ? rewriteAny(plan) : rewriteBelow(plan);
        made.setAnalyzed();
        return made;
    }

    private TreeSet<Integer> metFirst(LogicalPlan plan) throws Exception {
        TreeSet<Integer> known = (TreeSet<Integer>) inside.get(plan);
        if (known != null) {
            return known;
        }
        TreeSet<Integer> found = new TreeSet<Integer>();
        if (!isCached(plan)) {
            Integer number = numberOf(plan);
            if (number != null) {
                found.add(number);
            } else {
                for (LogicalPlan part : PlanLeaves.parts(plan)) {
                    found.addAll(metFirst(part));
                }
            }
        }
        inside.put(plan, found);
        return found;
    }

    private boolean isCached(LogicalPlan plan) throws Exception {
        if (cache == null || plan instanceof Command) {
            return false;
        }
        Boolean known = (Boolean) cached.get(plan);
        if (known == null) {
            // 3.5: (plan), 4.x: (session, plan)
            Object found = Reflect.call(cache, "lookupCachedData", new Object[] {session, plan});
            known = Boolean.valueOf(((scala.Option) found).isDefined());
            cached.put(plan, known);
        }
        return known.booleanValue();
    }

    // -- DataFrames found again -----------------------------------------------------------------------

    private Integer numberOf(LogicalPlan plan) {
        Integer known = (Integer) frames.get(plan);
        if (known != null || copies.containsKey(plan)) {
            return known != null ? known : (Integer) copies.get(plan);
        }
        ArrayList alike = (ArrayList) framesByShape.get(shape(plan));
        for (int i = 0; alike != null && known == null && i < alike.size(); i++) {
            LogicalPlan frame = (LogicalPlan) alike.get(i);
            if (isCopy(plan, frame)) {
                known = (Integer) frames.get(frame);
            }
        }
        copies.put(plan, known);
        return known;
    }

    private static String shape(LogicalPlan plan) {
        return plan.getClass().getName() + "/" + plan.children().size() + "/" + plan.output().size();
    }

    private static boolean isCopy(LogicalPlan plan, LogicalPlan frame) {
        if (plan.children().isEmpty() || plan.output().equals(frame.output())) {
            return false;  // Spark copies a plan only to give it other expression ids
        }
        Object one = ((QueryPlan) plan).canonicalized();
        Object other = ((QueryPlan) frame).canonicalized();
        if (one.hashCode() != other.hashCode() || !one.equals(other)) {
            return false;
        }
        ArrayList<LogicalPlan> ownLeaves = new ArrayList<LogicalPlan>();
        ArrayList<LogicalPlan> leaves = new ArrayList<LogicalPlan>();
        PlanLeaves.add(plan, ownLeaves);
        PlanLeaves.add(frame, leaves);
        for (int i = 0; i < leaves.size(); i++) {
            if (leaves.size() != ownLeaves.size() || !PlanLeaves.readTheSame(ownLeaves.get(i), leaves.get(i))) {
                return false;
            }
        }
        return leaves.size() == ownLeaves.size();
    }

    // -- plans with something cut out -----------------------------------------------------------------

    private LogicalPlan rewriteAny(LogicalPlan plan) throws Exception {
        LogicalPlan known = (LogicalPlan) rewritten.get(plan);
        if (known == null) {
            Integer number = isCached(plan) ? null : numberOf(plan);
            InMemoryRelation relation = number == null ? null : (InMemoryRelation) relations.get(number);
            if (relation != null) {
                known = withHintsOf(plan, rows(relation, plan, number));
            } else {
                known = isCached(plan) ? plan : rewriteBelow(plan);
            }
            rewritten.put(plan, known);
        }
        return known;
    }

    /** What is below a selection is rewritten for it alone: its parent's rows may be read for another one too. */
    private LogicalPlan rewriteBelow(LogicalPlan plan) throws Exception {
        Selection selection = selections.isEmpty() ? null : (Selection) selections.get(numberOf(plan));
        if (selection == null) {
            return rewriteParts(plan);
        }
        Selection around = selecting;
        IdentityHashMap before = rewritten;
        selecting = selection;
        rewritten = new IdentityHashMap();
        try {
            return rewriteParts(plan);
        } finally {
            selecting = around;
            rewritten = before;
        }
    }

    private LogicalPlan rows(InMemoryRelation relation, LogicalPlan plan, Integer number) {
        boolean selects = selecting != null && selecting.parent.equals(number);
        return selects
            ? relation.withOutput(SelectedRows.marked(plan.output(), selecting.which))
            : relation.withOutput(plan.output());
    }

    private LogicalPlan rewriteParts(LogicalPlan plan) throws Exception {
        LogicalPlan made = withNewSubqueries(withNewChildren(plan));
        return made instanceof Command && made.children().isEmpty() ? withNewQueries(made) : made;
    }

    private LogicalPlan withNewChildren(LogicalPlan plan) throws Exception {
        ArrayList<LogicalPlan> children = new ArrayList<LogicalPlan>();
        for (LogicalPlan child : JavaConverters.asJavaIterable(plan.children())) {
            children.add(rewriteAny(child));
        }
        return (LogicalPlan) PlanNodes.withChildren(plan, children);
    }

    private LogicalPlan withNewSubqueries(LogicalPlan plan) throws Exception {
        IdentityHashMap<LogicalPlan, LogicalPlan> replaced = new IdentityHashMap<LogicalPlan, LogicalPlan>();
        for (LogicalPlan subquery : JavaConverters.asJavaIterable(plan.subqueries())) {
            LogicalPlan made = rewriteAny(subquery);
            if (made != subquery) {
                made.setAnalyzed();
                replaced.put(subquery, made);
            }
        }
        return replaced.isEmpty() ? plan : (LogicalPlan) PlanNodes.withNewSubqueryPlans(plan, replaced);
    }

    private LogicalPlan withNewQueries(LogicalPlan command) throws Exception {
        Object[] arguments = new Object[command.productArity()];
        boolean changed = false;
        for (int i = 0; i < arguments.length; i++) {
            Object argument = command.productElement(i);
            arguments[i] = argument instanceof LogicalPlan ? rewriteAny((LogicalPlan) argument) : argument;
            if (arguments[i] != argument) {
                ((LogicalPlan) arguments[i]).setAnalyzed();
                changed = true;
            }
        }
        return changed ? (LogicalPlan) command.makeCopy(arguments) : command;
    }

    /** As Spark's CacheManager does when it puts cached rows into a plan. */
    private static LogicalPlan withHintsOf(LogicalPlan plan, LogicalPlan rows) {
        scala.collection.Seq hints = (scala.collection.Seq) EliminateResolvedHint$.MODULE$.extractHintsFromPlan(plan)._2();
        for (int i = hints.size() - 1; i >= 0; i--) {
            rows = new ResolvedHint(rows, (HintInfo) hints.apply(i));
        }
        return rows;
    }

    /** Which of the parent's rows a DataFrame has. */
    static class Selection {
        private final Integer parent;
        private final String which;

        Selection(Integer parent, String which) {
            this.parent = parent;
            this.which = which;
        }
    }
}
