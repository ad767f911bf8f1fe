package flinkmagic.planning;

import java.util.Arrays;
import java.util.HashSet;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import scala.collection.Iterator;

/** Tells, without planning a query, that it only passes on the rows of what it reads: Spark runs that as one stage. */
public class SingleStages {
    private static final HashSet<String> NARROW = new HashSet<String>(Arrays.asList(new String[] {
        "CommandResult", "DataSourceV2Relation", "DataSourceV2ScanRelation", "DeserializeToObject", "ExternalRDD",
        "Filter", "Generate", "HiveTableRelation", "LocalRelation", "LogicalRDD",
        "LogicalRelation", "MapElements", "MapInArrow", "MapInPandas", "MapPartitions", "OneRowRelation", "Project",
        "PythonMapInArrow", "Range", "ResolvedHint", "Sample", "SerializeFromObject", "SubqueryAlias", "TypedFilter",
        "Union", "View"
    }));

    /** Whether it surely has one stage; a query of which this is not known may have one, too. */
    public boolean surely(QueryExecution query) {
        return isNarrow(query.withCachedData());
    }

    /** Whether a query only passes on the rows of another, or some of them; that one, or a copy of it, is inside it. */
    public boolean passesOn(LogicalPlan plan, LogicalPlan below) {
        if (plan == below || plan.canonicalized().equals(below.canonicalized())) {
            return true;
        }
        if (!(NARROW.contains(plan.getClass().getSimpleName()) || FrameParts.isLimit(plan))
            || !plan.subqueries().isEmpty()) {
            return false;
        }
        Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            if (passesOn((LogicalPlan) children.next(), below)) {
                return true;
            }
        }
        return false;
    }

    private static boolean isNarrow(LogicalPlan plan) {
        if (plan instanceof InMemoryRelation) {
            return ((InMemoryRelation) plan).cacheBuilder().isCachedColumnBuffersLoaded();
        }
        if (!NARROW.contains(plan.getClass().getSimpleName()) || !plan.subqueries().isEmpty()) {
            return false;
        }
        Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            if (!isNarrow((LogicalPlan) children.next())) {
                return false;
            }
        }
        return true;
    }
}
