package flinkmagic.deployment;

import flinkmagic.jvm.Reflect;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.unsafe.Platform;
import scala.Function0;
import scala.runtime.AbstractFunction0;

/**
 * Runs a body under the configuration of the job's clone of the session, within a query of the user's own session:
 * Spark makes a query's session the active one, and passes its configuration to the tasks. The classes of sessions
 * differ between versions, hence the reflection.
 */
public class InSession extends AbstractFunction0 {
    private final Object session;
    private final Function0 body;

    public InSession(Object session, Function0 body) {
        this.session = session;
        this.body = body;
    }

    @Override
    public Object apply() {
        SparkSession.setActiveSession((SparkSession) session);
        try {
            return Reflect.call(SQLExecution$.MODULE$, "withSQLConfPropagated", new Object[] {session, body});
        } catch (Exception error) {
            Platform.throwException(error);
            return null;
        }
    }
}
