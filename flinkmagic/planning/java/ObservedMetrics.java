package flinkmagic.planning;

import java.util.IdentityHashMap;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.execution.CollectMetricsExec;
import org.apache.spark.sql.execution.CollectMetricsExec$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import scala.Function0;
import scala.Tuple2;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.runtime.AbstractFunction0;

/**
 * What `observe` collects in the queries of a job, whose stages are in several plans.
 *
 * Spark asks the plan that ran for its metrics. Here that plan begins where other stages ended: it holds rows of a
 * shuffle, of a boundary, of another sink's exchange. So the plan is walked as it was read, down to what computes those
 * rows, and each operator in it returns the metrics of the one that ran in its place.
 */
public class ObservedMetrics {
    private final IdentityHashMap<SparkPlan, Object> collected = new IdentityHashMap<SparkPlan, Object>();

    /**
     * The stage of an operator is done. Its metrics stay what they are now: rows that are lost and computed again by
     * later stages do not count twice.
     */
    public synchronized void collected(PlanRebuilder rebuilder, SparkPlan plan) {
        CollectMetricsExec ran = (CollectMetricsExec) rebuilder.ran(plan);
        if (ran != null && !collected.containsKey(ran)) {
            collected.put(ran, ran.collectedMetrics());
        }
    }

    /** The metrics of a query by name, as a Scala function: of the operators that have run, or been prepared to. */
    public Function0 of(PlanRebuilder rebuilder, SparkPlan root) {
        return new Metrics(this, rebuilder, root);
    }

    public synchronized Row rowOf(CollectMetricsExec ran) {
        Row row = (Row) collected.get(ran);
        return row == null ? ran.collectedMetrics() : row;
    }

    static class Metrics extends AbstractFunction0 {
        private final ObservedMetrics observed;
        private final PlanRebuilder rebuilder;
        private final SparkPlan root;

        Metrics(ObservedMetrics observed, PlanRebuilder rebuilder, SparkPlan root) {
            this.observed = observed;
            this.rebuilder = rebuilder;
            this.root = root;
        }

        @Override
        public Object apply() {
            return add(root, (Map) Map$.MODULE$.empty());
        }

        private Map add(SparkPlan plan, Map found) {
            SparkPlan first = rebuilder.standIn(plan);
            if (first != null) {
                return add(first, found);
            }
            if (PlanNodes.reused(plan) != null) {
                return add(PlanNodes.reused(plan), found);
            }
            if (plan instanceof InMemoryTableScanExec) {
                InMemoryTableScanExec scan = (InMemoryTableScanExec) plan;
                SparkPlan cached = scan.relation().cachedPlan();
                return rebuilder.keeps(scan.relation())
                    ? add(cached, found) : (Map) found.$plus$plus(CollectMetricsExec$.MODULE$.collect(cached));
            }
            if (plan instanceof CollectMetricsExec) {
                CollectMetricsExec ran = (CollectMetricsExec) rebuilder.ran(plan);
                if (ran != null) {
                    found = (Map) found.$plus(new Tuple2(ran.name(), observed.rowOf(ran)));
                }
            }
            for (SparkPlan part : PlanNodes.parts(plan)) {
                found = add(part, found);
            }
            return found;
        }
    }
}
