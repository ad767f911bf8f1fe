package flinkmagic.planning;

import flinkmagic.jvm.Reflect;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.SparkPlan;

/**
 * Replaces a command's query by rows. Some commands hide their query from planning and plan it themselves when they
 * run; given the rows of a plan of the job they plan only what they add to it.
 */
public class CommandRows {
    /** The command over the rows of a physical plan, under the names (and expression ids) of its query. */
    public LogicalPlan over(LogicalPlan command, LogicalPlan query, SparkPlan rows, Object session) throws Exception {
        Object leaf = Reflect.make(LogicalRDD.class, new Object[] {
            query.output(), rows.execute(), rows.outputPartitioning(), rows.outputOrdering(), session
        });
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
}
