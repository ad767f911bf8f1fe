package flinkmagic.planning;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;

import org.apache.spark.Dependency;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.ExternalRDDScanExec;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import scala.collection.JavaConverters;

/** Tells what physical plans consist of, without reading them whole. */
public class PlanKinds {
    /** What a physical plan consists of: the classes of its operators, of version-2 scans and of the RDDs it reads. */
    public String of(SparkPlan plan) {
        return of(plan, new ArrayList());
    }

    /** The same without the RDDs that have one of these ids, and what lies behind those. */
    public String of(SparkPlan plan, List left) {
        StringBuilder found = new StringBuilder();
        addKinds(plan, left, found);
        return found.toString();
    }

    private static void addKinds(SparkPlan plan, List left, StringBuilder found) {
        found.append(plan.getClass().getName()).append('\n');
        if (plan instanceof BatchScanExec) {
            found.append(((BatchScanExec) plan).scan().getClass().getName()).append('\n');
        } else if (plan instanceof RDDScanExec) {
            addLineage(((RDDScanExec) plan).rdd(), left, found, 200);
        } else if (plan instanceof ExternalRDDScanExec) {
            addLineage(((ExternalRDDScanExec) plan).rdd(), left, found, 200);
        }
        for (SparkPlan part : PlanNodes.parts(plan)) {
            addKinds(part, left, found);
        }
    }

    /** A lineage that was never cut by a checkpoint may be endless. */
    private static void addLineage(RDD rdd, List left, StringBuilder found, int most) {
        ArrayList waiting = new ArrayList();
        IdentityHashMap<RDD, RDD> seen = new IdentityHashMap<RDD, RDD>();
        waiting.add(rdd);
        while (!waiting.isEmpty() && seen.size() < most) {
            RDD next = (RDD) waiting.remove(waiting.size() - 1);
            if (!left.contains(Integer.valueOf(next.id())) && seen.put(next, next) == null) {
                found.append(next.getClass().getName()).append('\n');
                for (Object dependency : JavaConverters.asJavaIterable(next.dependencies())) {
                    waiting.add(((Dependency) dependency).rdd());
                }
            }
        }
    }
}
