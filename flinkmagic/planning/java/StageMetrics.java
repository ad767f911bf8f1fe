package flinkmagic.planning;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import flinkmagic.jvm.Reflect;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.status.api.v1.StageData;
import org.apache.spark.status.api.v1.StageStatus;
import org.apache.spark.status.api.v1.TaskStatus;
import org.apache.spark.storage.RDDInfo;
import org.apache.spark.util.AccumulatorV2;
import scala.Option;
import scala.Tuple2;
import scala.collection.JavaConverters;

/**
 * What the operators of a stage that has run have measured: Spark's SQL metrics, and of scans which files they read, or
 * how much of a cache is there.
 *
 * Spark adds a task's metrics to those of the operators on the driver before it reports the task's end, so that they
 * are whole when the stage is.
 */
public class StageMetrics {
    /**
     * The metrics above zero of each operator, by its number and their names, as deflated JSON.
     *
     * @param numbers those of the stage's operators, separated by commas
     * @param top what is above them, an exchange or a write's command, as it was planned: its metrics have the name
     *     `top`; null if there is nothing
     * @return also, under `words`, what Spark's UI calls each metric, and of which kind it is
     */
    public byte[] of(PlanReader reader, PlanRebuilder rebuilder, String numbers, SparkPlan top) throws Exception {
        Map<String, Object> answer = new LinkedHashMap<String, Object>();
        Map<String, Object> words = new LinkedHashMap<String, Object>();
        for (String number : numbers.split(",")) {
            if (number.length() > 0) {
                answer.put(number, facts(ran(rebuilder, reader.node(Integer.parseInt(number))), words));
            }
        }
        if (top != null) {
            answer.put("top", facts(ran(rebuilder, top), words));
        }
        answer.put("words", words);
        return Reflect.deflated(answer);
    }

    /** The ids of the metrics by which the operators that run for others count their rows, separated by commas. */
    public String rowMetrics(PlanReader reader, PlanRebuilder rebuilder, String numbers) throws Exception {
        ArrayList<String> ids = new ArrayList<String>();
        for (String number : numbers.split(",")) {
            Option rows = rebuilder.rebuild(reader.node(Integer.parseInt(number))).metrics().get("numOutputRows");
            if (rows.isDefined()) {
                ids.add(String.valueOf(((SQLMetric) rows.get()).id()));
            }
        }
        return String.join(",", ids);
    }

    /** A cached plan runs as it was read. */
    private static SparkPlan ran(PlanRebuilder rebuilder, SparkPlan read) {
        SparkPlan ran = rebuilder.ran(read);
        if (ran == null) {
            return read;
        }
        return ran instanceof ReusedExchangeExec ? ((ReusedExchangeExec) ran).child() : ran;
    }

    private static Map<String, Object> facts(SparkPlan plan, Map<String, Object> words) {
        Map<String, Object> facts = new LinkedHashMap<String, Object>();
        for (Tuple2 each : JavaConverters.asJavaIterable(plan.metrics())) {
            AccumulatorV2 metric = (AccumulatorV2) each._2();
            Number value = (Number) metric.value();
            if (value.longValue() > 0) {
                facts.put((String) each._1(), value);
                String called = metric.name().isDefined() ? (String) metric.name().get() : (String) each._1();
                words.put((String) each._1(), new String[] {called, ((SQLMetric) each._2()).metricType()});
            }
        }
        if (plan instanceof FileSourceScanExec) {
            HadoopFsRelation relation = ((FileSourceScanExec) plan).relation();
            if (relation.location() instanceof PartitioningAwareFileIndex) {
                addFiles(facts, relation, (PartitioningAwareFileIndex) relation.location());
                facts.put("partitions", ((FileSourceScanExec) plan).partitionFilters().mkString(" AND "));
                String[] columns = relation.partitionSchema().fieldNames();
                if (columns.length > 0) {
                    facts.put("partitionColumns", columns);
                }
            }
        } else if (plan instanceof InMemoryTableScanExec) {
            addCache(facts, ((InMemoryTableScanExec) plan).relation().cacheBuilder());
        }
        return facts;
    }

    /** What a cache of the user's holds; nothing of one that is not filled, or was dropped, nor of what a run keeps. */
    private static void addCache(Map<String, Object> facts, CachedRDDBuilder cache) {
        if (PlanLeaves.isOfRun(cache) || !cache.isCachedColumnBuffersLoaded()) {
            return;
        }
        RDD rows = cache.cachedColumnBuffers();
        for (RDDInfo info : rows.sparkContext().getRDDStorageInfo()) {
            if (info.id() == rows.id()) {
                facts.put("cacheId", Integer.valueOf(rows.id()));
                facts.put("cachePartitions", Integer.valueOf(info.numPartitions()));
                facts.put("cachedPartitions", Integer.valueOf(info.numCachedPartitions()));
                facts.put("cachedBytes", Long.valueOf(info.memSize()));
                facts.put("cachedOnDisk", Long.valueOf(info.diskSize()));
            }
        }
    }

    /**
     * How many stages have read each of some caches, separated by commas; -1 of one that is still there.
     *
     * @param ids those of the caches' RDDs, separated by commas
     */
    public String readsOfDropped(SparkContext context, String ids) {
        List<String> answer = new ArrayList<String>();
        for (String each : ids.split(",")) {
            Integer id = Integer.valueOf(each);
            boolean isThere = context.getPersistentRDDs().contains(id);
            answer.add(isThere ? "-1" : Integer.toString(reads(context, id)));
        }
        return String.join(",", answer);
    }

    private static int reads(SparkContext context, Integer id) {
        int stages = 0;
        scala.collection.Seq known = context.statusStore().stageList(
            new ArrayList<StageStatus>(), false, false, new double[0], new ArrayList<TaskStatus>());
        for (Object one : JavaConverters.asJavaIterable(known)) {
            StageData stage = (StageData) one;
            if (stage.status() == StageStatus.COMPLETE && stage.rddIds().contains(id)) {
                stages++;
            }
        }
        return stages;
    }

    private static void addFiles(Map<String, Object> facts, HadoopFsRelation relation, PartitioningAwareFileIndex index) {
        List<String> paths = new ArrayList<String>();
        for (Object root : JavaConverters.asJavaIterable(index.rootPaths())) {
            paths.add(root.toString());
        }
        facts.put("paths", paths);
        facts.put("format", relation.toString());
        scala.collection.Seq files = index.allFiles();
        if (!files.isEmpty()) {
            Path first = ((FileStatus) files.head()).getPath();
            boolean isSplitable = relation.fileFormat().isSplitable(relation.sparkSession(), relation.options(), first);
            facts.put("splittable", Boolean.valueOf(isSplitable));
        }
    }
}
