package flinkmagic.planning;

import java.util.ArrayList;

import flinkmagic.jvm.Reflect;
import org.apache.spark.rdd.RDD;
import org.apache.spark.rdd.UnionRDD;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;

/** Kept rows to which others are added: the batches that are there are kept again as they are. */
public class AppendedBatches {
    /**
     * Puts batches that are there before those of a builder.
     *
     * @param partitions how many all of them are to have
     * @param isPartitioned whether it matters in which partition a row is: both have the same ones then
     */
    public static void join(RDD there, CachedRDDBuilder builder, int partitions, boolean isPartitioned)
            throws Exception {
        RDD added = builder.cachedColumnBuffers();
        added.unpersist(false);
        int before = there.getNumPartitions();
        int more = added.getNumPartitions();
        if (isPartitioned && (before != partitions || more != 0 && more != partitions)) {
            throw new IllegalStateException("kept rows have other partitions than those that are added");
        }
        ArrayList all = new ArrayList();
        all.add(there);
        all.add(added);
        RDD union = new UnionRDD(there.sparkContext(), PlanNodes.vector(all), there.elementClassTag());
        ArrayList<int[]> groups = new ArrayList<int[]>();
        for (int i = 0; i < partitions; i++) {
            ArrayList members = new ArrayList();
            for (int j = i; j < before; j += partitions) {
                members.add(Integer.valueOf(j));
            }
            for (int j = isPartitioned ? i : Math.floorMod(i - before, partitions); j < more; j += partitions) {
                members.add(Integer.valueOf(before + j));
            }
            int[] numbers = new int[members.size()];
            for (int j = 0; j < numbers.length; j++) {
                numbers[j] = ((Integer) members.get(j)).intValue();
            }
            groups.add(numbers);
        }
        RDD joined = PlanNodes.grouped(union, groups);
        joined.persist(builder.storageLevel()).setName(builder.cachedName());
        Reflect.field(CachedRDDBuilder.class, "_cachedColumnBuffers").set(builder, joined);
    }
}
