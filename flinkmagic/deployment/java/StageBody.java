package flinkmagic.deployment;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.SparkPlan;
import scala.runtime.AbstractFunction0;

/**
 * What runs inside SQLExecution.withNewExecutionId, which takes a Scala function: a plan's executeCollect (a write's
 * command), or a pass over an RDD (the batches of a result that is kept).
 */
public class StageBody extends AbstractFunction0 {
    private final Object target;

    public StageBody(Object target) {
        this.target = target;
    }

    @Override
    public Object apply() {
        if (target instanceof SparkPlan) {
            return ((SparkPlan) target).executeCollect();
        }
        return Long.valueOf(((RDD) target).count());
    }
}
