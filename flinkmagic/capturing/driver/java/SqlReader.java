package flinkmagic.capturing.driver;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

import flinkmagic.jvm.Reflect;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;
import org.apache.spark.sql.types.DataType;
import scala.Product;
import scala.collection.Iterable;
import scala.collection.Iterator;
import scala.collection.JavaConverters;

/**
 * Lists the plans that a parsed statement is made of, also those that are not its children, such as the table of an
 * INSERT, a query that is explained, common table expressions, subqueries, and all statements of a script.
 */
public class SqlReader {
    private static final Set<String> STATEMENTS = new HashSet<String>(
        Arrays.asList(new String[] {"Call", "InsertIntoDir", "UnresolvedInsert", "UnresolvedExecuteImmediate"}));
    private static final Set<String> WITH_TARGET = new HashSet<String>(Arrays.asList(new String[] {
        "AppendData", "DeleteFromTable", "InsertIntoStatement", "MergeIntoTable", "OverwriteByExpression",
        "OverwritePartitionsDynamic", "UnresolvedInsert", "UpdateTable"}));
    private static final String[] TARGETS = {"targetTable", "table"};
    private static final String[] NAMES = {"multipartIdentifier", "nameParts"};

    private final List<Map<String, Object>> facts = new ArrayList<Map<String, Object>>();
    private final List<LogicalPlan> plans = new ArrayList<LogicalPlan>();
    private final Map<Object, Object> seen = new IdentityHashMap<Object, Object>();

    /**
     * The plans, the statement itself first: as deflated JSON, and themselves. Of each is told: its class, whether it is
     * a statement (a command, or what becomes one), the index in this list of the statement that it belongs to (-1:
     * none), whether it is the table that this statement changes, and the parts of its name.
     */
    public Object[] read(LogicalPlan statement) throws Exception {
        SqlReader found = new SqlReader();
        found.visit(statement, -1, false, Collections.EMPTY_SET);
        return new Object[] {Reflect.deflated(found.facts), found.plans.toArray()};
    }

    private void visit(Object part, int owner, boolean isTarget, Set<String> common) throws Exception {
        if (part instanceof LogicalPlan) {
            visitPlan((LogicalPlan) part, owner, isTarget, common);
        } else if (part instanceof PlanExpression) {
            visit(((PlanExpression) part).plan(), owner, false, common);
            visitAll(((Expression) part).children().iterator(), owner, common);
        } else if (part instanceof Expression) {
            visitAll(((Expression) part).children().iterator(), owner, common);
        } else if (part instanceof Iterable) {
            visitAll(((Iterable) part).iterator(), owner, common);
        } else if (part instanceof Product && !(part instanceof DataType) && seen.put(part, part) == null) {
            visitAll(((Product) part).productIterator(), owner, common);
        }
    }

    private void visitAll(Iterator parts, int owner, Set<String> common) throws Exception {
        while (parts.hasNext()) {
            visit(parts.next(), owner, false, common);
        }
    }

    private void visitPlan(LogicalPlan plan, int owner, boolean isTarget, Set<String> common) throws Exception {
        if (seen.put(plan, plan) != null) {
            return;
        }
        String kind = plan.getClass().getSimpleName().replace("$", "");
        List<String> name = nameOf(plan);
        if (kind.equals("UnresolvedRelation") && name != null && name.size() == 1
            && common.contains(name.get(0).toString().toLowerCase(Locale.ROOT))) {
            return;
        }
        boolean isStatement =
            plan instanceof Command || plan instanceof ParsedStatement || STATEMENTS.contains(kind);
        Map<String, Object> fact = new LinkedHashMap<String, Object>();
        fact.put("kind", kind);
        fact.put("is_statement", Boolean.valueOf(isStatement));
        fact.put("owner", Integer.valueOf(owner));
        fact.put("is_target", Boolean.valueOf(isTarget));
        fact.put("name", name);
        int place = facts.size();
        facts.add(fact);
        plans.add(plan);
        int within = isStatement ? place : owner;
        if (kind.equals("UnresolvedWith")) {
            visitWith(plan, within, common);
            return;
        }
        if (WITH_TARGET.contains(kind)) {
            visit(callFirst(plan, TARGETS), within, true, common);
        } else if (isTarget) {
            // An alias of the table.
            for (Object below : JavaConverters.asJavaIterable(plan.children())) {
                visit(below, within, true, common);
            }
        }
        visitAll(plan.productIterator(), within, common);
        // A plan that is made when it is asked for is not a part of its maker.
        visitAll(plan.children().iterator(), within, common);
    }

    /** A common table expression is known to those after it and to the query, but not to itself. */
    private void visitWith(LogicalPlan plan, int owner, Set<String> common) throws Exception {
        Set<String> known = new HashSet<String>(common);
        for (Object each : JavaConverters.asJavaIterable((Iterable) Reflect.call(plan, "cteRelations"))) {
            Product relation = (Product) each;
            visit(relation.productElement(1), owner, false, known);
            known = new HashSet<String>(known);
            known.add(relation.productElement(0).toString().toLowerCase(Locale.ROOT));
        }
        visitAll(plan.children().iterator(), owner, known);
    }

    private static List<String> nameOf(LogicalPlan plan) throws Exception {
        Object parts = plan.getClass().getSimpleName().startsWith("Unresolved") ? callFirst(plan, NAMES) : null;
        if (!(parts instanceof Iterable)) {
            return null;
        }
        List<String> name = new ArrayList<String>();
        for (Object each : JavaConverters.asJavaIterable((Iterable) parts)) {
            name.add(each.toString());
        }
        return name;
    }

    /** The answer of the first of these methods that an object has; null if it has none of them. */
    private static Object callFirst(Object object, String[] methods) throws Exception {
        for (String each : methods) {
            Object answer = Reflect.callIfAny(object, each);
            if (answer != null) {
                return answer;
            }
        }
        return null;
    }
}
