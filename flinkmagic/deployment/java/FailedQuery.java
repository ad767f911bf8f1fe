package flinkmagic.deployment;

import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import scala.runtime.AbstractFunction0;

/**
 * A query of which a stage has failed before its last one ran. Spark is told of it as of a plain one that fails, and so
 * are listeners and the SQL tab.
 */
public class FailedQuery extends AbstractFunction0 {
    private final Throwable error;

    public FailedQuery(Throwable error) {
        this.error = error;
    }

    /** Runs nothing; the error does not leave the JVM, where PySpark would look for a class for it once more. */
    public void tell(QueryExecution query, Option name) {
        try {
            SQLExecution.withNewExecutionId(query, name, this);
        } catch (Throwable told) {
            if (told != error) {
                Platform.throwException(told);
            }
        }
    }

    @Override
    public Object apply() {
        Platform.throwException(error);
        return null;
    }
}
