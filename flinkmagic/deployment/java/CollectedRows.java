package flinkmagic.deployment;

import java.util.Arrays;

import flinkmagic.jvm.Reflect;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.Seq;
import scala.runtime.AbstractFunction0;

/**
 * What runs inside SQLExecution.withNewExecutionId for rows that are looked at on the driver: collects those of a plan,
 * and returns a LocalRelation of them, which Spark reads without a job.
 */
public class CollectedRows extends AbstractFunction0 {
    private final SparkPlan plan;
    private final Seq output;

    public CollectedRows(SparkPlan plan, Seq output) {
        this.plan = plan;
        this.output = output;
    }

    @Override
    public Object apply() {
        Seq rows = PythonUtils.toSeq(Arrays.asList((Object[]) plan.executeCollect()));
        try {
            return Reflect.make(LocalRelation.class, new Object[] {output, rows});
        } catch (Exception unknown) {
            throw new IllegalStateException(unknown);
        }
    }
}
