package flinkmagic.reuse;

import java.util.ArrayList;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import flinkmagic.jvm.Reflect;
import org.apache.spark.Partition;
import org.apache.spark.rdd.CoalescedRDD;
import org.apache.spark.rdd.CoalescedRDDPartition;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.CommandExecutionMode$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.internal.SessionState;
import scala.Option;
import scala.collection.JavaConverters;
import scala.runtime.AbstractFunction1;

/**
 * Rows that are stored a file for each partition, and read in the same partitions and order. Executors do not have our
 * classes: what their tasks need are Spark's own.
 *
 * Seen on Spark 3.5 and 4.3.
 */
public class RowFiles {
    private static final Pattern NUMBER = Pattern.compile("[0-9]+");

    /** Some neighbouring partitions of rows. */
    public RDD some(RDD rows, int first, int number) throws Exception {
        Partition[] parts = new Partition[number];
        for (int i = 0; i < number; i++) {
            parts[i] = new CoalescedRDDPartition(i, rows, new int[] {first + i}, Option.empty());
        }
        RDD some = new CoalescedRDD(rows, number, Option.empty(), rows.elementClassTag());
        Reflect.field(RDD.class, "partitions_").set(some, parts);
        return some;
    }

    /** The rows that a plan reads from files, each partition those of the file with the number in its name. */
    public Stored stored(SessionState state, LogicalPlan plan, int number) {
        return new Stored(state, plan, number);
    }

    /** Rows in files. As a function it returns those of some columns, by their positions. */
    public static class Stored extends AbstractFunction1 {
        private final SessionState state;
        private final LogicalPlan plan;
        private final int number;

        Stored(SessionState state, LogicalPlan plan, int number) {
            this.state = state;
            this.plan = plan;
            this.number = number;
        }

        /** The rows with all columns. */
        public RDD all() throws Exception {
            return byNumber(state.executePlan(plan, CommandExecutionMode$.MODULE$.SKIP()).executedPlan(), number);
        }

        @Override
        public Object apply(Object positions) {
            ArrayList columns = new ArrayList();
            for (int position : (int[]) positions) {
                columns.add(plan.output().apply(position));
            }
            LogicalPlan some = new Project(JavaConverters.asScalaBuffer(columns).toList(), plan);
            some.setAnalyzed();
            try {
                return byNumber(state.executePlan(some, CommandExecutionMode$.MODULE$.SKIP()).executedPlan(), number);
            } catch (RuntimeException error) {
                throw error;
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }
    }

    /** Spark would begin with the largest files, and put small ones together. */
    private static RDD byNumber(SparkPlan plan, int number) throws Exception {
        // A scan takes settings of the active session.
        Option before = SparkSession.getActiveSession();
        SparkSession.setActiveSession(plan.session());
        try {
            numbered(plan, number);
            return plan.execute();
        } finally {
            if (before.isDefined()) {
                SparkSession.setActiveSession((SparkSession) before.get());
            } else {
                SparkSession.clearActiveSession();
            }
        }
    }

    private static void numbered(SparkPlan plan, int number) throws Exception {
        FileScanRDD scan = (FileScanRDD) Reflect.call(plan.collectLeaves().head(), "inputRDD");
        ArrayList<TreeMap<Long, PartitionedFile>> found = new ArrayList<TreeMap<Long, PartitionedFile>>();
        for (int i = 0; i < number; i++) {
            found.add(new TreeMap<Long, PartitionedFile>());
        }
        for (FilePartition partition : JavaConverters.asJavaIterable(scan.filePartitions())) {
            PartitionedFile[] files = partition.files();
            for (PartitionedFile file : files) {
                String name = file.toPath().getName();
                Matcher digits = NUMBER.matcher(name);
                digits.find();
                ((TreeMap) found.get(Integer.parseInt(digits.group()))).put(Long.valueOf(file.start()), file);
            }
        }
        Partition[] parts = new Partition[number];
        for (int i = 0; i < number; i++) {
            TreeMap<Long, PartitionedFile> slices = (TreeMap) found.get(i);
            PartitionedFile[] inOrder = new PartitionedFile[slices.size()];
            int next = 0;
            for (PartitionedFile slice : slices.values()) {
                inOrder[next++] = slice;
            }
            parts[i] = new FilePartition(i, inOrder);
        }
        Reflect.field(RDD.class, "partitions_").set(scan, parts);
    }
}
