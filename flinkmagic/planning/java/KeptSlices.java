package flinkmagic.planning;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Map;

import flinkmagic.jvm.Reflect;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.compress.CompressionCodecFactory;
import org.apache.spark.HashPartitioner;
import org.apache.spark.rdd.MapPartitionsRDD;
import org.apache.spark.rdd.PartitionerAwareUnionRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.FileSourceOptions;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.columnar.DefaultCachedBatchSerializer;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.storage.RDDInfo;
import org.apache.spark.storage.StorageLevel;
import scala.Tuple2;
import scala.collection.JavaConverters;
import scala.collection.immutable.Nil$;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;

/**
 * All columns of a part of the rows of text files, kept as columns: a slice, and then the next ones.
 *
 * A slice is a range of the bytes of each partition of a scan, and follows on the ranges of the slices before. Spark
 * gives the lines that begin in a range, so ranges that follow each other give the lines of the partition, in order. A
 * query reads the slices that are kept, and the rest from the files; a new slice is kept while the query itself reads
 * it. Partitions, their rows and the order of these are those of the scan, whose plan is made here and nowhere else:
 * how the query is planned does not depend on what is kept.
 *
 * The tasks run Spark's own classes only, as those of this file are known to the driver alone. That is why partitions
 * are put together by `PartitionerAwareUnionRDD`, and why RDDs are given a partitioner that has no meaning here. Seen on
 * Spark 3.5.9 and 4.3.0.
 */
public class KeptSlices {
    /** Less than this of a partition is not read for itself; the lines above a header are fewer, too. */
    private static final long LEAST = 1L << 16;

    /** Of a source, if more is left. */
    private static final long LEAST_OF_SOURCE = 1L << 20;

    /** In these a byte that ends a line is nothing else. */
    private static final HashSet<String> ENCODINGS = new HashSet<String>(Arrays.asList(new String[] {
        "utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1", "windows-1252", "cp1252"
    }));

    private static final ClassTag ROWS = ClassTag$.MODULE$.apply(InternalRow.class);

    private final Map<String, Slices> kept = new HashMap<String, Slices>();

    /** What a query reads, and keeps. */
    public Reading reading(ColumnPlanning planning) {
        return new Reading(this, planning);
    }

    /** How many bytes of a source's files are kept. */
    public synchronized long bytes(String key) {
        Slices slices = (Slices) kept.get(key);
        return slices == null ? 0 : slices.bytes();
    }

    /** How much memory and disk the slices of a source take. */
    public synchronized long stored(String key) {
        Slices slices = (Slices) kept.get(key);
        long sum = 0;
        for (int i = 0; slices != null && i < slices.all.size(); i++) {
            RDDInfo info = info(((Slice) slices.all.get(i)).batches);
            sum += info == null ? 0 : info.memSize() + info.diskSize();
        }
        return sum;
    }

    /** Release the slices of a source. */
    public synchronized void forget(String key) {
        Slices slices = (Slices) kept.remove(key);
        for (int i = 0; slices != null && i < slices.all.size(); i++) {
            ((Slice) slices.all.get(i)).batches.unpersist(false);
        }
    }

    private synchronized Slices of(String key) {
        Slices slices = (Slices) kept.get(key);
        return slices == null ? new Slices() : slices.copy();
    }

    private synchronized boolean add(String key, Slices read, Slice more) {
        Slices known = of(key);
        boolean isNext = known.all.equals(read.all);
        if (isNext) {
            known.all.add(more);
            kept.put(key, known);
        }
        return isNext;
    }

    private static RDDInfo info(RDD rdd) {
        RDDInfo[] all = rdd.context().getRDDStorageInfo();
        for (RDDInfo each : all) {
            if (each.id() == rdd.id()) {
                return each;
            }
        }
        return null;
    }

    /** The slices of a source, one after the other. */
    static class Slices {
        final ArrayList<Slice> all = new ArrayList<Slice>();

        Slices copy() {
            Slices copied = new Slices();
            copied.all.addAll(all);
            return copied;
        }

        Slice last() {
            return all.isEmpty() ? null : (Slice) all.get(all.size() - 1);
        }

        long bytes() {
            long sum = 0;
            for (Slice each : all) {
                sum += each.bytes;
            }
            return sum;
        }
    }

    /** All columns of a range of each partition. */
    static class Slice {
        final FilePartition[] layout;
        final long[] from;
        final long[] to;
        final long bytes;
        final ArrayList<Attribute> columns = new ArrayList<Attribute>();
        RDD batches;

        Slice(FilePartition[] layout, long[] from, long[] to) {
            this.layout = layout;
            this.from = from;
            this.to = to;
            long sum = 0;
            for (int i = 0; i < from.length; i++) {
                sum += to[i] - from[i];
            }
            this.bytes = sum;
        }

        /** The next slice of at most so many bytes; null if it would be too small. */
        static Slice next(FilePartition[] layout, Slice last, double most) {
            long[] from = last == null ? new long[layout.length] : last.to;
            long left = 0;
            for (int i = 0; i < layout.length; i++) {
                left += length(layout[i]) - from[i];
            }
            if (left <= 0 || most < Math.min(left, LEAST_OF_SOURCE)) {
                return null;
            }
            double part = Math.min(1.0, most / left);
            long[] to = new long[layout.length];
            for (int i = 0; i < layout.length; i++) {
                long end = length(layout[i]);
                to[i] = from[i] + Math.max(LEAST, (long) Math.ceil((end - from[i]) * part));
                to[i] = end - to[i] < LEAST ? end : to[i];
            }
            return new Slice(layout, from, to);
        }

        /** Has it kept while it is read for the first time. */
        void keep(FileSourceScanExec scan, FileScanRDD files, StorageLevel level, String name) throws Exception {
            HadoopFsRelation relation = scan.relation();
            for (StructField field : JavaConverters.asJavaIterable(relation.dataSchema())) {
                columns.add(KeptColumns.column(field.name(), field.dataType(), true));
            }
            Object reader = relation.fileFormat().buildReaderWithPartitionValues(
                relation.sparkSession(), relation.dataSchema(), relation.partitionSchema(), relation.dataSchema(),
                (scala.collection.immutable.Seq) (Object) Nil$.MODULE$, relation.options(), configuration(relation));
            RDD rows = fileScan(scan, files, reader, relation.dataSchema(), ranges(layout, from, to));
            // To compress columns takes longer than to parse them, and the text bounds what they need without.
            SQLConf uncompressed = scan.conf().clone();
            uncompressed.setConfString("spark.sql.inMemoryColumnarStorage.compressed", "false");
            batches = new DefaultCachedBatchSerializer().convertInternalRowToCachedBatch(
                rows, PlanNodes.vector(columns), level, uncompressed);
            batches.setName(name);
            batches.persist(level);
        }

        boolean isThere() {
            RDDInfo info = batches == null ? null : info(batches);
            return info != null && info.numCachedPartitions() == layout.length;
        }
    }

    /** A query: how its scans are read. */
    public static class Reading extends AbstractFunction1 implements ColumnPlanning.Scans {
        private final KeptSlices slices;
        private final ColumnPlanning planning;
        /** By scan, its slices as they were when it was planned. */
        private final IdentityHashMap<SparkPlan, String> decided = new IdentityHashMap<SparkPlan, String>();
        /** By key, those slices, and the one that is kept. */
        private final Map<String, Slices> read = new HashMap<String, Slices>();
        private final Map<String, Slice> fills = new HashMap<String, Slice>();
        /** What plans read that were made to be run: slices, by key, and cached rows, by what computes them. */
        private final HashSet made = new HashSet();
        private final IdentityHashMap<Object, Object> madeOfCaches = new IdentityHashMap<Object, Object>();

        Reading(KeptSlices slices, ColumnPlanning planning) {
            this.slices = slices;
            this.planning = planning;
            planning.scanBy(this);
        }

        /** A plan of the query is made: decide which slices its scans read, and keep. Call it before any runs. */
        public synchronized void planned(SparkPlan root, LogicalPlan optimized) throws Exception {
            if (!SourceColumns.asksForFiles(optimized)) {
                decide(root);
            }
        }

        private void decide(SparkPlan plan) throws Exception {
            if (plan instanceof FileSourceScanExec) {
                decideOn((FileSourceScanExec) plan);
            }
            for (SparkPlan part : PlanNodes.parts(plan)) {
                decide(part);
            }
        }

        private void decideOn(FileSourceScanExec scan) throws Exception {
            ColumnPlanning.Source source = planning.sourceOf(scan.relation());
            if (source == null || planning.level() == null || !isReadable(scan)) {
                return;
            }
            Slices known = known(source);
            boolean mayFill = source.isReadWhole().booleanValue() && source.share() > 0 && !fills.containsKey(source.key);
            if (known.all.isEmpty() && !mayFill && !fills.containsKey(source.key)) {
                return;
            }
            FilePartition[] layout = layout((FileScanRDD) scan.inputRDD());
            if (!isSplitable(scan, layout) || known.last() != null && !isSame(layout, known.last().layout)) {
                return;
            }
            Slice more = mayFill ? Slice.next(layout, known.last(), source.share() * source.bytes) : null;
            if (more != null) {
                fills.put(source.key, more);
            }
            if (!known.all.isEmpty() || fills.containsKey(source.key)) {
                read.put(source.key, known);
                decided.put(scan, source.key);
            }
        }

        private Slices known(ColumnPlanning.Source source) {
            return read.containsKey(source.key) ? (Slices) read.get(source.key) : slices.of(source.key);
        }

        /** The scans stay in the plan, as its key is made of them: what differs is where their rows come from. */
        @Override
        public synchronized void readIn(SparkPlan plan) throws Exception {
            if (plan instanceof FileSourceScanExec) {
                FileSourceScanExec scan = (FileSourceScanExec) plan;
                ColumnPlanning.Source source = planning.sourceOf(scan.relation());
                Slices known = source == null || !isReadable(scan) ? new Slices() : known(source);
                if (!known.all.isEmpty()) {
                    FileScanRDD files = (FileScanRDD) scan.inputRDD();
                    if (isSame(layout(files), known.last().layout)) {
                        read.put(source.key, known);
                        made.add(source.key);
                        Reflect.field(FileSourceScanExec.class, "inputRDD").set(scan, rows(scan, files, known));
                    }
                }
            }
            for (SparkPlan child : JavaConverters.asJavaIterable(plan.children())) {
                readIn(child);
            }
        }

        /** Whether a scan reads slices, or keeps one. */
        public synchronized boolean isSliced(SparkPlan plan) {
            return decided.containsKey(plan);
        }

        /** How many bytes of a source it reads from slices that were kept before. */
        public synchronized long reads(String key) {
            Slices known = (Slices) read.get(key);
            return known == null ? 0 : known.bytes();
        }

        /** How many bytes of a source it keeps if the scan runs. */
        public synchronized long fills(String key) {
            Slice more = (Slice) fills.get(key);
            return more == null ? 0 : more.bytes;
        }

        /** Whether a plan that keeps some of a source was made, to be run: none is if a stage's result is there. */
        public synchronized boolean keeps(String key) {
            Slice more = (Slice) fills.get(key);
            return more != null && more.batches != null;
        }

        /** Let later queries read what it has kept of a source; whether it is all there. What is not is released. */
        public synchronized boolean hand(String key) {
            Slice more = (Slice) fills.get(key);
            if (more.isThere() && slices.add(key, (Slices) read.get(key), more)) {
                return true;
            }
            drop(key);
            return false;
        }

        /** Release what it has kept of a source. */
        public synchronized void drop(String key) {
            Slice more = (Slice) fills.get(key);
            if (more != null && more.batches != null) {
                more.batches.unpersist(false);
            }
        }

        /**
         * Whether a plan that reads kept columns of a source was made, to be run: none is if a stage's result is there.
         */
        public synchronized boolean hasRead(ColumnPlanning.Source source) {
            boolean has = made.contains(source.key);
            for (KeptColumns columns : source.columns()) {
                has = has || madeOfCaches.containsKey(columns.relation().cacheBuilder());
            }
            return has;
        }

        /** The plan that runs for a scan of files; one of cached rows stays as it is. */
        @Override
        public synchronized Object apply(Object plan) {
            if (plan instanceof InMemoryTableScanExec) {
                madeOfCaches.put(((InMemoryTableScanExec) plan).relation().cacheBuilder(), null);
                return plan;
            }
            String key = (String) decided.get(plan);
            if (key == null) {
                return plan;
            }
            made.add(key);
            try {
                FileSourceScanExec scan = (FileSourceScanExec) plan;
                return PlanNodes.scanOver(scan, rows(scan, key), scan.outputPartitioning());
            } catch (RuntimeException error) {
                throw error;
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }

        private RDD rows(FileSourceScanExec scan, String key) throws Exception {
            FileScanRDD files = (FileScanRDD) scan.inputRDD();
            Slices used = ((Slices) read.get(key)).copy();
            Slice more = (Slice) fills.get(key);
            if (more != null && isSame(layout(files), more.layout)) {
                if (more.batches == null) {
                    more.keep(scan, files, planning.level(), planning.sourceOf(scan.relation()).name);
                }
                used.all.add(more);
            }
            return used.all.isEmpty() ? files : rows(scan, files, used);
        }

        private static RDD rows(FileSourceScanExec scan, FileScanRDD files, Slices used) throws Exception {
            ArrayList<Attribute> columns = used.last().columns;
            ArrayList<Attribute> needed = new ArrayList<Attribute>();
            for (StructField field : JavaConverters.asJavaIterable(scan.requiredSchema())) {
                needed.add((Attribute) columns.get(scan.relation().dataSchema().fieldIndex(field.name())));
            }
            ArrayList<RDD> parts = new ArrayList<RDD>();
            for (Slice each : used.all) {
                parts.add(each.batches);
            }
            RDD rows = new DefaultCachedBatchSerializer().convertCachedBatchToInternalRow(
                joined(parts), PlanNodes.vector(columns), PlanNodes.vector(needed), scan.conf());
            FilePartition[] layout = layout(files);
            long[] ends = new long[layout.length];
            boolean isAll = true;
            for (int i = 0; i < layout.length; i++) {
                ends[i] = length(layout[i]);
                isAll = isAll && used.last().to[i] >= ends[i];
            }
            if (isAll) {
                return rows;
            }
            parts.clear();
            parts.add(rows);
            parts.add(fileScan(scan, files, Reflect.field(FileScanRDD.class, "readFunction").get(files), files.readSchema(),
                ranges(layout, used.last().to, ends)));
            return joined(parts);
        }
    }

    // -- which scans ----------------------------------------------------------------------------------

    /** Whether the rows of a scan are those of its lines, each by itself. */
    private static boolean isReadable(FileSourceScanExec scan) throws Exception {
        HadoopFsRelation relation = scan.relation();
        if (relation.fileFormat().getClass().getSimpleName().equals("TextFileFormat")) {
            return false;  // its lines are read as fast as they are found in memory
        }
        if (scan.bucketedScan() || !relation.partitionSchema().isEmpty() || !scan.fileConstantMetadataColumns().isEmpty()
            || scan.output().size() != scan.requiredSchema().size() || !(scan.inputRDD() instanceof FileScanRDD)) {
            return false;
        }
        for (StructField field : JavaConverters.asJavaIterable(scan.requiredSchema())) {
            if (relation.dataSchema().getFieldIndex(field.name()).isEmpty()
                || !relation.dataSchema().apply(field.name()).dataType().equals(field.dataType())) {
                return false;
            }
        }
        if (relation.fileFormat().getClass().getSimpleName().equals("JsonFileFormat")
            && SourceScan.mayPassNulls(scan.dataFilters())) {
            return false;
        }
        boolean hasHeader = false;
        boolean hasComments = false;
        for (Tuple2 option : JavaConverters.asJavaIterable(relation.options())) {
            String name = ((String) option._1()).toLowerCase();
            String value = ((String) option._2()).toLowerCase();
            if (name.equals("linesep")
                || (name.equals("encoding") || name.equals("charset")) && !ENCODINGS.contains(value)) {
                return false;
            }
            hasHeader = hasHeader || name.equals("header") && !value.equals("false");
            hasComments = hasComments || name.equals("comment");
        }
        return !(hasHeader && hasComments);
    }

    private static boolean isSplitable(FileSourceScanExec scan, FilePartition[] layout) throws Exception {
        HadoopFsRelation relation = scan.relation();
        CompressionCodecFactory codecs = new CompressionCodecFactory(configuration(relation));
        for (FilePartition partition : layout) {
            for (PartitionedFile file : partition.files()) {
                if (codecs.getCodec(file.toPath()) != null || !relation.fileFormat().isSplitable(
                        relation.sparkSession(), relation.options(), file.toPath())) {
                    return false;
                }
            }
        }
        return true;
    }

    // -- ranges of files ------------------------------------------------------------------------------

    private static FilePartition[] layout(FileScanRDD files) {
        return (FilePartition[]) JavaConverters.seqAsJavaList(files.filePartitions()).toArray(new FilePartition[0]);
    }

    private static boolean isSame(FilePartition[] one, FilePartition[] other) {
        boolean isSame = one.length == other.length;
        for (int i = 0; isSame && i < one.length; i++) {
            PartitionedFile[] files = one[i].files();
            PartitionedFile[] others = other[i].files();
            isSame = files.length == others.length;
            for (int j = 0; isSame && j < files.length; j++) {
                isSame = files[j].filePath().equals(others[j].filePath()) && files[j].start() == others[j].start()
                    && files[j].length() == others[j].length();
            }
        }
        return isSame;
    }

    private static long length(FilePartition partition) {
        long sum = 0;
        PartitionedFile[] files = partition.files();
        for (PartitionedFile each : files) {
            sum += each.length();
        }
        return sum;
    }

    /** A range of each partition, counted over the bytes of its files. */
    private static scala.collection.immutable.Vector ranges(FilePartition[] layout, long[] from, long[] to)
            throws Exception {
        ArrayList<FilePartition> made = new ArrayList<FilePartition>();
        for (int i = 0; i < layout.length; i++) {
            ArrayList<PartitionedFile> files = new ArrayList<PartitionedFile>();
            long start = 0;
            PartitionedFile[] all = layout[i].files();
            for (PartitionedFile file : all) {
                long first = Math.max(from[i] - start, 0);
                long last = Math.min(to[i] - start, file.length());
                if (first < last) {
                    files.add(new PartitionedFile(
                        file.partitionValues(), file.filePath(), file.start() + first, last - first, file.locations(),
                        file.modificationTime(), file.fileSize(), file.otherConstantMetadataColumnValues()));
                }
                start += file.length();
            }
            made.add(new FilePartition(
                layout[i].index(), (PartitionedFile[]) files.toArray(new PartitionedFile[0])));
        }
        return PlanNodes.vector(made);
    }

    private static RDD fileScan(
            FileSourceScanExec scan, FileScanRDD files, Object reader, StructType schema,
            scala.collection.immutable.Vector partitions) throws Exception {
        return (RDD) Reflect.make(FileScanRDD.class, new Object[] {  // its session's class differs
            Reflect.field(FileScanRDD.class, "sparkSession").get(files), reader, partitions, schema, Nil$.MODULE$,
            scala.collection.immutable.Map$.MODULE$.empty(), new FileSourceOptions(scan.relation().options())
        });
    }

    private static Configuration configuration(HadoopFsRelation relation) throws Exception {
        SessionState state = (SessionState) Reflect.call(relation.sparkSession(), "sessionState");
        return state.newHadoopConfWithOptions(relation.options());
    }

    /** RDDs with as many partitions each, put together partition by partition. */
    private static RDD joined(ArrayList<RDD> rdds) throws Exception {
        RDD first = (RDD) rdds.get(0);
        if (rdds.size() == 1) {
            return first;
        }
        Object same = new scala.Some(new HashPartitioner(first.getNumPartitions()));
        for (RDD rdd : rdds) {
            Reflect.field(rdd instanceof MapPartitionsRDD ? MapPartitionsRDD.class : RDD.class, "partitioner").set(rdd, same);
        }
        return new PartitionerAwareUnionRDD(first.context(), PlanNodes.vector(rdds), ROWS);
    }
}
