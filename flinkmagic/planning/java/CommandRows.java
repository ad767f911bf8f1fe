package flinkmagic.planning;

import java.lang.reflect.Constructor;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.SparkPlan;
import scala.Option;
import scala.collection.Seq;

/**
 * Replaces a command's query by rows. Some commands hide their query from planning and plan it themselves when they
 * run; given the rows of a plan of the job they plan only what they add to it.
 */
public class CommandRows {
    /** The command over the rows of a physical plan, under the names (and expression ids) of its query. */
    public LogicalPlan over(LogicalPlan command, LogicalPlan query, SparkPlan rows, Object session) throws Exception {
        LogicalPlan leaf = leaf(query, rows, session);
        Object[] arguments = new Object[command.productArity()];
        boolean found = false;
        for (int i = 0; i < arguments.length; i++) {
            Object argument = command.productElement(i);
            found = found || argument == query;
            arguments[i] = argument == query ? leaf : argument;
        }
        if (!found) {
            throw new IllegalStateException(command.nodeName() + " does not hold its query");
        }
        return (LogicalPlan) ((TreeNode) command).makeCopy(arguments);
    }

    /** `LogicalRDD`, whose constructor takes 8 arguments on 3.5 and 10 on 4.3. */
    private static LogicalPlan leaf(LogicalPlan query, SparkPlan rows, Object session) throws Exception {
        Constructor constructor = LogicalRDD.class.getConstructors()[0];
        Class[] types = constructor.getParameterTypes();
        Object[] arguments = new Object[types.length];
        boolean hasOutput = false;
        for (int i = 0; i < types.length; i++) {
            if (Seq.class.isAssignableFrom(types[i])) {
                arguments[i] = hasOutput ? rows.outputOrdering() : query.output();
                hasOutput = true;
            } else if (RDD.class.isAssignableFrom(types[i])) {
                arguments[i] = rows.execute();
            } else if (Partitioning.class.isAssignableFrom(types[i])) {
                arguments[i] = rows.outputPartitioning();
            } else if (types[i] == boolean.class) {
                arguments[i] = Boolean.FALSE;
            } else if (types[i] == Option.class) {
                arguments[i] = scala.None$.MODULE$;
            } else {
                arguments[i] = session;
            }
        }
        return (LogicalPlan) constructor.newInstance(arguments);
    }
}
