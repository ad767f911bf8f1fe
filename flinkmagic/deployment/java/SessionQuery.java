import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.QueryExecution$;
import org.apache.spark.sql.execution.SparkPlan;

/**
 * A query of the user's session whose plan was made elsewhere: on the job's clone of that session. Spark tells the
 * listeners of a query's own session of it, and takes what they see of its plan from the query.
 *
 * QueryExecution's constructor differs between versions, so the arguments are put in when this is compiled.
 */
public class SessionQuery extends QueryExecution {
    private final SparkPlan plan;

    public SessionQuery(Object session, Object command, SparkPlan plan) {
        super(/* arguments */);
        this.plan = plan;
    }

    public SparkPlan executedPlan() {
        return plan;
    }

    public SparkPlan sparkPlan() {
        return plan;
    }
}
