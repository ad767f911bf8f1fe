package flinkmagic.deployment;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

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
        try {
            method("org.apache.spark.sql.SparkSession", "setActiveSession", 1).invoke(null, new Object[] {session});
            return method("org.apache.spark.sql.execution.SQLExecution", "withSQLConfPropagated", 2)
                .invoke(null, new Object[] {session, body});
        } catch (InvocationTargetException failed) {
            Platform.throwException(failed.getCause());
        } catch (Exception unknown) {
            Platform.throwException(unknown);
        }
        return null;
    }

    private static Method method(String type, String name, int parameters) throws Exception {
        Method[] methods = Class.forName(type, true, Thread.currentThread().getContextClassLoader()).getMethods();
        for (Method each : methods) {
            if (each.getName().equals(name) && each.getParameterTypes().length == parameters) {
                return each;
            }
        }
        throw new NoSuchMethodException(type + "." + name);
    }
}
