package flinkmagic.reuse;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.ReusedSubqueryExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import scala.collection.JavaConverters;

/**
 * Names the columns of an operator by their places, so that two plans agree even if their expression ids differ.
 *
 * Seen on Spark 3.5 and 4.3.
 */
public class ColumnNames {
    /** What may be an expression's id in the name of a column, or another number of Spark's. */
    private static final Pattern NUMBERED = Pattern.compile("(#|_gen_alias_)(\\d+)(L?)");

    private final QueryPlan plan;
    private final IdentityHashMap<QueryPlan, HashMap<Long, Integer>> places;
    private final HashMap<Long, String> ids = new HashMap<Long, String>();

    /** For one operator. All operators of a plan share `places`, which stores what was looked up. */
    public ColumnNames(QueryPlan plan, IdentityHashMap<QueryPlan, HashMap<Long, Integer>> places) {
        this.plan = plan;
        this.places = places;
        nameInputs();
    }

    /** For what is said of the rows of a plan. */
    public static ColumnNames ofRows(QueryPlan plan, IdentityHashMap<QueryPlan, HashMap<Long, Integer>> places) {
        ColumnNames names = new ColumnNames(plan, places);
        names.ids.clear();
        names.nameAll(plan.output(), 0);
        return names;
    }

    /** What represents an expression id in the operator. */
    public String nameOf(ExprId expressionId) {
        Long id = Long.valueOf(expressionId.id());
        String name = (String) ids.get(id);
        if (name == null) {
            name = "own" + ids.size();
            ids.put(id, name);
        }
        return name;
    }

    /**
     * A column's name, with ids replaced by what represents them in the plan. Spark names columns after expressions,
     * such as sum(m#12L), and each run has ids of its own. A name that only looks like that, such as item#1, is the
     * user's and stays.
     */
    public String withoutIds(String name) {
        Matcher numbered = NUMBERED.matcher(name);
        StringBuffer out = new StringBuffer();
        while (numbered.find()) {
            String text = numbered.group();
            if (!numbered.group(1).equals("#")) {
                text = numbered.group(1);
            } else if (name.lastIndexOf('(', numbered.start()) >= 0 && numbered.group(2).length() < 19) {
                Long id = Long.valueOf(numbered.group(2));
                Object place = ids.containsKey(id) ? ids.get(id) : placesIn(plan).get(id);
                text = place == null ? text : "#at " + place + numbered.group(3);
            }
            numbered.appendReplacement(out, Matcher.quoteReplacement(text));
        }
        return numbered.appendTail(out).toString();
    }

    /**
     * Columns are numbered by their place among those of the inputs; any other id is the operator's own, and is
     * numbered by its first use there.
     */
    private void nameInputs() {
        int place = 0;
        for (Object child : JavaConverters.asJavaIterable(plan.children())) {
            place = nameAll(((QueryPlan) child).output(), place);
        }
        if (plan instanceof InMemoryTableScanExec) {
            nameAll((scala.collection.Seq) ((InMemoryTableScanExec) plan).relation().output(), place);
        }
    }

    private int nameAll(scala.collection.Seq<Attribute> attributes, int place) {
        for (Attribute attribute : JavaConverters.asJavaIterable(attributes)) {
            Long id = Long.valueOf(attribute.exprId().id());
            if (!ids.containsKey(id)) {
                ids.put(id, "in" + place);
            }
            place++;
        }
        return place;
    }

    /** By id, the place of each column of a plan and of all plans below it. */
    private HashMap<Long, Integer> placesIn(QueryPlan root) {
        HashMap<Long, Integer> known = (HashMap<Long, Integer>) places.get(root);
        if (known == null) {
            known = new HashMap<Long, Integer>();
            places.put(root, known);
            ArrayList<QueryPlan> open = new ArrayList<QueryPlan>();
            open.add(root);
            while (!open.isEmpty()) {
                QueryPlan plan = (QueryPlan) open.remove(open.size() - 1);
                for (Object column : JavaConverters.asJavaIterable(plan.output())) {
                    Long id = Long.valueOf(((Attribute) column).exprId().id());
                    if (!known.containsKey(id)) {
                        known.put(id, Integer.valueOf(known.size()));
                    }
                }
                open.addAll(JavaConverters.seqAsJavaList(standIn(plan).children()));
            }
        }
        return known;
    }

    /** What computes the rows of a plan: wrappers, and reads of what is computed elsewhere, do not change them. */
    public static QueryPlan standIn(QueryPlan plan) {
        while (true) {
            if (plan instanceof WholeStageCodegenExec || plan instanceof InputAdapter) {
                plan = (QueryPlan) plan.children().head();
            } else if (plan instanceof AdaptiveSparkPlanExec) {
                plan = ((AdaptiveSparkPlanExec) plan).initialPlan();
            } else if (plan instanceof ReusedSubqueryExec) {
                plan = (SparkPlan) ((ReusedSubqueryExec) plan).child();
            } else if (plan instanceof ReusedExchangeExec
                    && names((SparkPlan) plan).equals(names((SparkPlan) ((ReusedExchangeExec) plan).child()))) {
                plan = (SparkPlan) ((ReusedExchangeExec) plan).child();
            } else if (plan instanceof View) {
                plan = ((View) plan).child();
            } else {
                return plan;
            }
        }
    }

    private static List<String> names(SparkPlan plan) {
        List<String> found = new ArrayList<String>();
        for (Attribute column : JavaConverters.asJavaIterable(plan.output())) {
            found.add(column.name());
        }
        return found;
    }
}
