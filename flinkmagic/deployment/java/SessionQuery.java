package flinkmagic.deployment;

import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.QueryExecution$;
import org.apache.spark.sql.execution.SparkPlan;
import scala.Function0;
import scala.collection.immutable.Map;

/**
 * A query of the user's session whose plan was made elsewhere: on the job's clone of that session. Spark notifies the
 * listeners of a query's own session, and takes what they see of its plan from the query.
 *
 * QueryExecution's constructor differs between versions, so the arguments are put in when this is compiled.
 */
public class SessionQuery extends QueryExecution {
    private final SparkPlan plan;
    private Function0 metrics;
    private Map observed;

    public SessionQuery(Object session, Object command, SparkPlan plan) {
        super(/* arguments */);
        this.plan = plan;
    }

    /** Something in the query is observed: what returns the metrics by name, as the plan that runs may not hold all. */
    public void observe(Function0 metrics) {
        this.metrics = metrics;
    }

    @Override
    public synchronized Map observedMetrics() {
        if (metrics == null) {
            return super.observedMetrics();
        }
        if (observed == null) {
            observed = (Map) metrics.apply();
        }
        return observed;
    }

    @Override
    public SparkPlan executedPlan() {
        return plan;
    }

    @Override
    public SparkPlan sparkPlan() {
        return plan;
    }
}
