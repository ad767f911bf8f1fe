package flinkmagic.planning;

import java.util.IdentityHashMap;

import flinkmagic.jvm.Reflect;
import org.apache.spark.Dependency;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.ExternalRDDScanExec;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import scala.collection.JavaConverters;
import scala.runtime.AbstractFunction0;

/** Makes exchanges whose consumers read while they are written (Spark 4.3 and newer; earlier ones have none). */
public class PipelinedExchanges {
    private static final String SORTS = "spark.sql.execution.sortBeforeRepartition";

    /** The same exchange, pipelined. */
    public static SparkPlan of(SparkPlan exchange) throws Exception {
        ShuffleExchangeExec plan = (ShuffleExchangeExec) exchange;
        Object advisory = Reflect.call(plan, "advisoryPartitionSize");
        SparkPlan made = (SparkPlan) Reflect.make(ShuffleExchangeExec.class, new Object[] {
            plan.outputPartitioning(), plan.child(), plan.shuffleOrigin(), advisory, Boolean.TRUE
        });
        made.copyTagsFrom(plan);
        return made;
    }

    /**
     * The dependency of a pipelined exchange, and of those below it. Spark sorts rows before it deals them out in turn,
     * so that a task that runs again deals them out equally; a sort would let no row through before the last one is
     * read, and a pipelined exchange's tasks never run again one by one.
     */
    public static ShuffleDependency dependency(final ShuffleExchangeExec exchange) {
        SQLConf conf = (SQLConf) SQLConf$.MODULE$.get().clone();
        conf.setConfString(SORTS, "false");
        return (ShuffleDependency) SQLConf$.MODULE$.withExistingConf(conf, new Made(exchange));
    }

    /** Whether an RDD that a leaf reads, as the user gave it, is made through shuffles. */
    public static boolean readsShuffle(SparkPlan leaf) {
        RDD rdd = leaf instanceof RDDScanExec ? ((RDDScanExec) leaf).rdd() : ((ExternalRDDScanExec) leaf).rdd();
        return readsShuffle(rdd, new IdentityHashMap());
    }

    private static boolean readsShuffle(RDD rdd, IdentityHashMap seen) {
        if (seen.put(rdd, rdd) != null) {
            return false;
        }
        for (Object each : JavaConverters.asJavaIterable(rdd.dependencies())) {
            Dependency dependency = (Dependency) each;
            if (dependency instanceof ShuffleDependency || readsShuffle(dependency.rdd(), seen)) {
                return true;
            }
        }
        return false;
    }

    /** Janino knows no lambdas. */
    static class Made extends AbstractFunction0 {
        private final ShuffleExchangeExec exchange;

        Made(ShuffleExchangeExec exchange) {
            this.exchange = exchange;
        }

        @Override
        public Object apply() {
            return exchange.shuffleDependency();
        }
    }
}
