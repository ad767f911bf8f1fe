package flinkmagic.deployment;

import java.lang.reflect.Constructor;
import java.util.Arrays;

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
        Constructor constructor = LocalRelation.class.getConstructors()[0];
        Class[] types = constructor.getParameterTypes();
        Object[] arguments = new Object[types.length];
        for (int i = 0; i < types.length; i++) {
            if (Seq.class.isAssignableFrom(types[i])) {
                arguments[i] = i == 0 ? output : rows;
            } else if (types[i] == boolean.class) {
                arguments[i] = Boolean.FALSE;
            } else {
                arguments[i] = scala.None$.MODULE$;
            }
        }
        try {
            return constructor.newInstance(arguments);
        } catch (Exception unknown) {
            throw new IllegalStateException(unknown);
        }
    }
}
