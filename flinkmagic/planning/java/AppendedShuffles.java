package flinkmagic.planning;

import java.util.ArrayList;

import org.apache.spark.MapOutputStatistics;
import org.apache.spark.rdd.RDD;
import org.apache.spark.rdd.UnionRDD;
import org.apache.spark.sql.execution.ShufflePartitionSpec;
import org.apache.spark.sql.execution.exchange.Exchange;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;

/** Several shuffles that are read as one: the rows of a partition are those of this partition of each. */
public class AppendedShuffles {
    /**
     * The rows of shuffles that are partitioned alike.
     *
     * @param specs which partitions a task reads; null if each is read by one
     */
    public static RDD rows(ArrayList<Exchange> exchanges, ShufflePartitionSpec[] specs) throws Exception {
        ArrayList all = new ArrayList();
        for (Exchange each : exchanges) {
            all.add(specs == null ? each.execute() : ((ShuffleExchangeLike) each).getShuffleRDD(specs));
        }
        RDD first = (RDD) all.get(0);
        if (all.size() == 1) {
            return first;
        }
        RDD union = new UnionRDD(first.sparkContext(), PlanNodes.vector(all), first.elementClassTag());
        int partitions = first.getNumPartitions();
        ArrayList<int[]> groups = new ArrayList<int[]>();
        for (int i = 0; i < partitions; i++) {
            int[] members = new int[all.size()];
            for (int j = 0; j < members.length; j++) {
                members[j] = i + j * partitions;
            }
            groups.add(members);
        }
        return PlanNodes.grouped(union, groups);
    }

    /** What two shuffles that are partitioned alike have written. */
    public static MapOutputStatistics together(MapOutputStatistics one, MapOutputStatistics other) {
        long[] bytes = (long[]) one.bytesByPartitionId().clone();
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] += other.bytesByPartitionId()[i];
        }
        return new MapOutputStatistics(other.shuffleId(), bytes);
    }
}
