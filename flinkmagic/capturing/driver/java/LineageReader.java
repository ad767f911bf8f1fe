package flinkmagic.capturing.driver;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import flinkmagic.jvm.Reflect;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.Dependency;
import org.apache.spark.rdd.HadoopRDD;
import org.apache.spark.rdd.NewHadoopRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.collection.JavaConverters;

/**
 * Reads what the lineage of an RDD reads. Executes nothing.
 */
public class LineageReader {
    /**
     * What an RDD's lineage reads, as deflated JSON: one file of each folder of a scan, the folders of a Hadoop input;
     * each with a mark that says whether its files have been listed.
     */
    public byte[] rddPaths(RDD rdd) throws Exception {
        List found = new ArrayList();
        for (RDD each : lineageOf(rdd).values()) {
            addPaths(each, found);
        }
        return Reflect.deflated(found);
    }

    /** Whether an RDD is part of the lineage of another. */
    public boolean lineageHolds(RDD rdd, int id) {
        return lineageOf(rdd).containsKey(Integer.valueOf(id));
    }

    private static Map<Integer, RDD> lineageOf(RDD rdd) {
        Map<Integer, RDD> found = new LinkedHashMap<Integer, RDD>();
        ArrayDeque<RDD> open = new ArrayDeque<RDD>();
        open.add(rdd);
        while (!open.isEmpty()) {
            RDD current = (RDD) open.poll();
            if (found.put(Integer.valueOf(current.id()), current) == null
                    && current.getCheckpointFile().isEmpty()) {
                for (Object dependency : JavaConverters.asJavaIterable(current.dependencies())) {
                    open.add(((Dependency) dependency).rdd());
                }
            }
        }
        return found;
    }

    private static void addPaths(RDD rdd, List found) {
        if (rdd.getCheckpointFile().isDefined()) {
            // A checkpoint's rows are read from its files, and from nothing before it.
            found.add(Arrays.asList(new Object[] {rdd.getCheckpointFile().get(), Boolean.TRUE}));
        } else if (rdd instanceof FileScanRDD) {
            HashSet folders = new HashSet();
            for (FilePartition partition : JavaConverters.asJavaIterable(((FileScanRDD) rdd).filePartitions())) {
                PartitionedFile[] files = partition.files();
                for (PartitionedFile each : files) {
                    Path file = each.filePath().toPath();
                    if (folders.add(file.getParent())) {
                        found.add(Arrays.asList(new Object[] {file.toString(), Boolean.TRUE}));
                    }
                }
            }
        } else if (rdd instanceof HadoopRDD) {
            addFolders(((HadoopRDD) rdd).getJobConf(), found);
        } else if (rdd instanceof NewHadoopRDD) {
            addFolders(((NewHadoopRDD) rdd).getConf(), found);
        }
    }

    private static void addFolders(Configuration conf, List found) {
        String folders = conf.get("mapreduce.input.fileinputformat.inputdir", conf.get("mapred.input.dir", ""));
        String[] each = folders.split("(?<!\\\\),");
        for (String one : each) {
            if (one.length() > 0) {
                found.add(Arrays.asList(new Object[] {one.replace("\\,", ","), Boolean.FALSE}));
            }
        }
    }
}
