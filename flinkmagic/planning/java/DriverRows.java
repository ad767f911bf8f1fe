package flinkmagic.planning;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;

import flinkmagic.jvm.Reflect;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.columnar.CachedBatch;
import org.apache.spark.sql.execution.LocalTableScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.execution.exchange.BroadcastExchangeExec;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockResult;
import org.apache.spark.storage.RDDBlockId;
import org.apache.spark.storage.RDDInfo;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.JavaConverters;
import scala.collection.Seq;
import scala.collection.immutable.Nil$;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * Rows that the driver holds: nothing needs a Spark job to get them there.
 *
 * Spark collects a local relation without a job, but not where it broadcasts one. Seen on Spark 3.5.9 and 4.3.0.
 */
public class DriverRows {
    private static final ClassTag BATCHES = ClassTag$.MODULE$.apply(CachedBatch.class);

    /** A row has eight bytes for each value, and kept rows may be compressed: so much more they may take as rows. */
    private static final int UNPACKED = 8;

    /**
     * A copy of kept rows under other columns, as rows of the driver; null if they are more, if Spark does not have all
     * of them, if two columns are the same one, or if Spark keeps them in a way that does not tell their size. It starts
     * no job.
     *
     * @param blocks the driver's
     */
    public LocalRelation copy(
        CachedRDDBuilder kept, BlockManager blocks, Seq columns, int mostRows, long mostBytes
    ) throws Exception {
        RDD rows = kept.cachedColumnBuffers();
        if (!areStored(rows, mostBytes) || new HashSet(JavaConverters.seqAsJavaList(columns)).size() < columns.size()) {
            return null;
        }
        ArrayList<CachedBatch> batches = batches(rows, blocks);
        if (batches == null || count(batches) > mostRows) {
            return null;
        }
        SparkContext sc = rows.sparkContext();
        scala.collection.immutable.List output = ((SparkPlan) kept.cachedPlan()).output().toList();
        RDD read = kept.serializer().convertCachedBatchToInternalRow(
            sc.parallelize(PlanNodes.vector(batches), 1, BATCHES), output, output, SQLConf$.MODULE$.get());
        ArrayList<InternalRow> copies = new ArrayList<InternalRow>();
        Iterator each = read.iterator(read.partitions()[0], TaskContext$.MODULE$.empty());
        long bytes = 0;
        while (each.hasNext()) {
            Object row = each.next();
            bytes += row instanceof UnsafeRow ? ((UnsafeRow) row).getSizeInBytes() : Integer.MAX_VALUE;
            if (bytes > UNPACKED * mostBytes) {
                return null;
            }
            copies.add(((InternalRow) row).copy());
        }
        return (LocalRelation) Reflect.make(LocalRelation.class, new Object[] {columns, PlanNodes.vector(copies)});
    }

    private static boolean areStored(RDD rows, long mostBytes) {
        for (RDDInfo info : rows.sparkContext().getRDDStorageInfo()) {
            if (info.id() == rows.id()) {
                return info.numCachedPartitions() == rows.getNumPartitions()
                    && info.memSize() + info.diskSize() <= mostBytes;
            }
        }
        return false;
    }

    /** Those that Spark has stored; null if it has dropped any. */
    private static ArrayList<CachedBatch> batches(RDD rows, BlockManager blocks) {
        ArrayList<CachedBatch> found = new ArrayList<CachedBatch>();
        for (int partition = 0; partition < rows.getNumPartitions(); partition++) {
            Option block = blocks.get(new RDDBlockId(rows.id(), partition), BATCHES);
            if (block.isEmpty()) {
                return null;
            }
            Iterator data = ((BlockResult) block.get()).data();  // it is locked until it is read to its end
            while (data.hasNext()) {
                found.add((CachedBatch) data.next());
            }
        }
        return found;
    }

    private static long count(ArrayList<CachedBatch> batches) {
        long rows = 0;
        for (CachedBatch batch : batches) {
            rows += batch.numRows();
        }
        return rows;
    }

    /** A plan whose broadcasts of local relations start no job. */
    public static SparkPlan broadcast(SparkPlan plan) {
        return (SparkPlan) plan.transform(new Replacement(new Broadcasts()));
    }

    /** The same for an operator alone; null if it stays as it is. */
    public static SparkPlan broadcastAlone(SparkPlan plan) {
        if (!(plan instanceof BroadcastExchangeExec) || !(((BroadcastExchangeExec) plan).child() instanceof LocalTableScanExec)) {
            return null;
        }
        ArrayList<SparkPlan> children = new ArrayList<SparkPlan>();
        children.add(new Scan((SparkPlan) ((BroadcastExchangeExec) plan).child()));
        return (SparkPlan) PlanNodes.withChildren(plan, children);
    }

    /** Says so for each operator of a plan. */
    static class Broadcasts implements Replacement.Rule {
        @Override
        public Object of(Object plan) {
            return broadcastAlone((SparkPlan) plan);
        }
    }

    /** Hands the rows of a local relation to what is above it, also where Spark would run a job for that. */
    public static class Scan extends SparkPlan {
        private static final long serialVersionUID = 1L;

        private final SparkPlan relation;

        public Scan(SparkPlan relation) {
            this.relation = relation;
        }

        /** Tasks of a join may get its plan with their code, and know only Spark's classes. */
        public Object writeReplace() {
            return relation;
        }

        @Override
        public Tuple2 executeCollectIterator() {
            InternalRow[] rows = relation.executeCollect();
            Iterator each = JavaConverters.asScalaBuffer(Arrays.asList(rows)).iterator();
            return new Tuple2(Long.valueOf(rows.length), each);
        }

        @Override
        public RDD doExecute() {
            return relation.execute();
        }

        @Override
        public scala.collection.immutable.List output() {
            return relation.output().toList();
        }

        @Override
        public scala.collection.immutable.List children() {
            return Nil$.MODULE$;
        }

        /** With Scala 2.12. */
        public SparkPlan withNewChildrenInternal(scala.collection.IndexedSeq none) {
            return this;
        }

        /** With Scala 2.13. */
        public SparkPlan withNewChildrenInternal(scala.collection.immutable.IndexedSeq none) {
            return this;
        }

        @Override
        public String nodeName() {
            return relation.nodeName();
        }

        @Override
        public int productArity() {
            return 1;
        }

        @Override
        public Object productElement(int position) {
            return relation;
        }

        @Override
        public boolean canEqual(Object other) {
            return other instanceof Scan;
        }
    }
}
