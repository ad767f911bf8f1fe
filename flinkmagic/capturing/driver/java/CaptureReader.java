package flinkmagic.capturing.driver;

import java.io.ByteArrayOutputStream;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Paths;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.DeflaterOutputStream;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.Dependency;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.HadoopRDD;
import org.apache.spark.rdd.NewHadoopRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTablePartition;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.sources.DataSourceRegister;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;

/**
 * Answers what a capture asks the driver, each question in one call from Python. Executes nothing.
 *
 * Written for Janino: no lambdas, no type inference, raw collections.
 */
public class CaptureReader {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Method LAZY_ANALYSIS = lazyAnalysis();

    /**
     * Whether a query is analysed only as part of another query, one of whose columns it names (`Column.outer`). From
     * 4.0 on a Dataset asks `QueryExecution.isLazyAnalysis`, as this does.
     */
    public boolean isPartOfAnother(QueryExecution query) throws Exception {
        return LAZY_ANALYSIS != null && ((Boolean) LAZY_ANALYSIS.invoke(query, new Object[0])).booleanValue();
    }

    private static Method lazyAnalysis() {
        Method[] methods = QueryExecution.class.getMethods();
        for (int i = 0; i < methods.length; i++) {
            if (methods[i].getName().equals("isLazyAnalysis")) {
                return methods[i];
            }
        }
        return null;
    }

    /** The expression ids of a query's output, separated by blanks; none for a query that is part of another. */
    public String outputIds(QueryExecution query) throws Exception {
        StringBuilder ids = new StringBuilder();
        if (isPartOfAnother(query)) {
            return "";
        }
        Iterator output = ((QueryPlan) query.analyzed()).output().iterator();
        while (output.hasNext()) {
            ids.append(((Attribute) output.next()).exprId().id()).append(' ');
        }
        return ids.toString();
    }

    /** The current catalog and namespace, the SQL configuration and Hadoop's settings, as deflated JSON. */
    public byte[] state(SessionState state, SparkContext context) throws Exception {
        Map facts = new LinkedHashMap();
        facts.put("catalog", state.catalogManager().currentCatalog().name());
        facts.put("namespace", Arrays.asList(state.catalogManager().currentNamespace()));
        facts.put("conf", texts(state.conf().getAllConfs()));
        facts.put("hadoop", hadoopSettings(context.hadoopConfiguration()));
        return deflated(facts);
    }

    /** What was set in a context's Hadoop configuration, as deflated JSON. */
    public byte[] hadoop(Configuration configuration) throws Exception {
        return deflated(hadoopSettings(configuration));
    }

    /** By name, Hadoop's own value of settings that were not set; null if it has none. As deflated JSON. */
    public byte[] hadoopDefaults(List names) throws Exception {
        Configuration unset = new Configuration();
        Map defaults = new TreeMap();
        for (int i = 0; i < names.size(); i++) {
            defaults.put(names.get(i), unset.getRaw((String) names.get(i)));
        }
        return deflated(defaults);
    }

    /** All that does not come from Hadoop's own default files. */
    private static Map hadoopSettings(Configuration conf) {
        Map settings = new TreeMap();
        java.util.Iterator entries = conf.iterator();
        while (entries.hasNext()) {
            Map.Entry entry = (Map.Entry) entries.next();
            String[] sources = conf.getPropertySources((String) entry.getKey());
            if (sources == null || sources.length == 0 || !sources[sources.length - 1].endsWith("-default.xml")) {
                settings.put(entry.getKey(), entry.getValue());
            }
        }
        return settings;
    }

    /**
     * The leaves of an analysed plan and of its subqueries, as deflated JSON: for each its class and, if it reads files
     * that belong to no table, the folders, and whether its DataFrame listed the files.
     */
    public byte[] leaves(LogicalPlan plan) throws Exception {
        List facts = new ArrayList();
        List leaves = leavesOf(plan);
        for (int i = 0; i < leaves.size(); i++) {
            Map leaf = new LinkedHashMap();
            leaf.put("class", leaves.get(i).getClass().getSimpleName());
            if (leaves.get(i) instanceof LogicalRelation) {
                addFiles((LogicalRelation) leaves.get(i), leaf);
            }
            facts.add(leaf);
        }
        return deflated(facts);
    }

    /** One of the leaves, by its place among them. */
    public Object leaf(LogicalPlan plan, int place) {
        return leavesOf(plan).get(place);
    }

    private static void addFiles(LogicalRelation leaf, Map facts) {
        if (leaf.catalogTable().isDefined() || !(leaf.relation() instanceof HadoopFsRelation)) {
            return;
        }
        FileIndex index = ((HadoopFsRelation) leaf.relation()).location();
        facts.put("listed", Boolean.valueOf(index.getClass().getSimpleName().equals("InMemoryFileIndex")));
        List linked = new ArrayList();
        if (index instanceof InMemoryFileIndex) {
            addLinked((InMemoryFileIndex) index, linked);
            facts.put("flat", Boolean.valueOf(isFlat((InMemoryFileIndex) index)));
        }
        facts.put("paths", strings(index.rootPaths().iterator()));
        facts.put("linked", linked);
    }

    /** Whether all listed files lie directly in the folders that were named, or were named themselves. */
    private static boolean isFlat(InMemoryFileIndex index) {
        HashSet named = new HashSet();
        Iterator each = index.rootPaths().iterator();
        while (each.hasNext()) {
            named.add(((Path) each.next()).toUri().getPath());
        }
        Iterator files = index.allFiles().iterator();
        while (files.hasNext()) {
            Path file = ((FileStatus) files.next()).getPath();
            if (!named.contains(file.getParent().toUri().getPath()) && !named.contains(file.toUri().getPath())) {
                return false;
            }
        }
        return true;
    }

    /** Where symbolic links among the listed files and folders lead, if that is outside the folders that were named. */
    private static void addLinked(InMemoryFileIndex index, List paths) {
        List roots = new ArrayList();
        HashSet named = new HashSet();
        Iterator each = index.rootPaths().iterator();
        while (each.hasNext()) {
            Path root = (Path) each.next();
            named.add(local(root));
            roots.add(real(root));
        }
        HashSet folders = new HashSet();
        Iterator files = index.allFiles().iterator();
        while (files.hasNext()) {
            Path file = ((FileStatus) files.next()).getPath();
            if (!"file".equals(file.toUri().getScheme())) {
                return;
            }
            // A file that was named itself says nothing about its folder.
            if (named.contains(local(file))) {
                continue;
            }
            if (folders.add(file.getParent())) {
                addUnlessBelow(roots, file.getParent(), paths);
            }
            if (Files.isSymbolicLink(local(file))) {
                addUnlessBelow(roots, file, paths);
            }
        }
    }

    private static void addUnlessBelow(List roots, Path place, List paths) {
        java.nio.file.Path real = real(place);
        for (int i = 0; i < roots.size(); i++) {
            if (real.startsWith((java.nio.file.Path) roots.get(i))) {
                return;
            }
        }
        paths.add(place.toString());
    }

    private static java.nio.file.Path local(Path path) {
        return Paths.get(path.toUri().getPath(), new String[0]);
    }

    private static java.nio.file.Path real(Path path) {
        try {
            return local(path).toRealPath(new LinkOption[0]);
        } catch (java.io.IOException gone) {
            return local(path);
        }
    }

    private static List leavesOf(LogicalPlan plan) {
        List leaves = new ArrayList();
        addLeaves(plan, leaves);
        Iterator subqueries = ((QueryPlan) plan).subqueriesAll().iterator();
        while (subqueries.hasNext()) {
            addLeaves((LogicalPlan) subqueries.next(), leaves);
        }
        return leaves;
    }

    private static void addLeaves(LogicalPlan plan, List into) {
        Iterator leaves = plan.collectLeaves().iterator();
        while (leaves.hasNext()) {
            into.add(leaves.next());
        }
    }

    /** What a command writes and where, as deflated JSON. */
    public byte[] fileWrite(InsertIntoHadoopFsRelationCommand command, SessionState state) throws Exception {
        FileFormat format = command.fileFormat();
        Map facts = new LinkedHashMap();
        facts.put("path", command.outputPath().toString());
        facts.put("file", command.outputPath().getName());
        facts.put("mode", command.mode().toString());
        facts.put("format", format instanceof DataSourceRegister
            ? ((DataSourceRegister) format).shortName() : format.toString().toLowerCase(Locale.ROOT));
        facts.put("options", texts(command.options()));
        List columns = new ArrayList();
        Iterator partitionColumns = command.partitionColumns().iterator();
        while (partitionColumns.hasNext()) {
            columns.add(((Attribute) partitionColumns.next()).name());
        }
        facts.put("columns", columns);
        facts.put("dynamic", Boolean.valueOf(isDynamic(command, state)));
        facts.put("elsewhere", command.catalogTable().isEmpty() ? new ArrayList()
            : foldersElsewhere((CatalogTable) command.catalogTable().get(), state));
        facts.put("table", Boolean.valueOf(command.catalogTable().isDefined()));
        return deflated(facts);
    }

    /** The command's own answer follows the configuration of the thread's session, which may be another one's. */
    private static boolean isDynamic(InsertIntoHadoopFsRelationCommand command, SessionState state) {
        String overwrites = state.conf().getConfString("spark.sql.sources.partitionOverwriteMode", "static");
        Iterator options = command.options().iterator();
        while (options.hasNext()) {
            Tuple2 option = (Tuple2) options.next();
            if ("partitionOverwriteMode".equalsIgnoreCase((String) option._1())) {
                overwrites = (String) option._2();
            }
        }
        return "dynamic".equalsIgnoreCase(overwrites) && command.mode().toString().equals("Overwrite")
            && command.staticPartitions().size() < command.partitionColumns().size();
    }

    /** The partition folders outside its own folder of the table that a relation reads; deflated JSON. */
    public byte[] partitionsElsewhere(LogicalRelation leaf) throws Exception {
        if (leaf.catalogTable().isEmpty() || !(leaf.relation() instanceof HadoopFsRelation)) {
            return deflated(new ArrayList());
        }
        HadoopFsRelation files = (HadoopFsRelation) leaf.relation();
        return partitionsElsewhere((CatalogTable) leaf.catalogTable().get(), files.sparkSession().sessionState());
    }

    /** The folders of a table's partitions that do not lie in the folder of the table, as deflated JSON. */
    public byte[] partitionsElsewhere(CatalogTable table, SessionState state) throws Exception {
        return deflated(foldersElsewhere(table, state));
    }

    private static List foldersElsewhere(CatalogTable table, SessionState state) {
        List found = new ArrayList();
        if (table.partitionColumnNames().isEmpty() || table.storage().locationUri().isEmpty()) {
            return found;
        }
        String home = table.storage().locationUri().get().toString();
        String below = home.endsWith("/") ? home : home + "/";
        Iterator partitions = state.catalog().listPartitions(table.identifier(), Option.empty()).iterator();
        while (partitions.hasNext()) {
            Option folder = ((CatalogTablePartition) partitions.next()).storage().locationUri();
            if (folder.isDefined() && !folder.get().toString().startsWith(below)) {
                found.add(new Path((java.net.URI) folder.get()).toString());
            }
        }
        return found;
    }

    /**
     * What an RDD's lineage reads, as deflated JSON: one file of each folder of a scan, the folders of a Hadoop input;
     * each with a mark that says whether its files have been listed.
     */
    public byte[] rddPaths(RDD rdd) throws Exception {
        List found = new ArrayList();
        java.util.Iterator lineage = lineageOf(rdd).values().iterator();
        while (lineage.hasNext()) {
            addPaths((RDD) lineage.next(), found);
        }
        return deflated(found);
    }

    /** Whether an RDD is part of the lineage of another. */
    public boolean lineageHolds(RDD rdd, int id) {
        return lineageOf(rdd).containsKey(Integer.valueOf(id));
    }

    private static Map lineageOf(RDD rdd) {
        Map found = new LinkedHashMap();
        ArrayDeque open = new ArrayDeque();
        open.add(rdd);
        while (!open.isEmpty()) {
            RDD current = (RDD) open.poll();
            if (found.put(Integer.valueOf(current.id()), current) == null
                    && current.getCheckpointFile().isEmpty()) {
                Iterator dependencies = current.dependencies().iterator();
                while (dependencies.hasNext()) {
                    open.add(((Dependency) dependencies.next()).rdd());
                }
            }
        }
        return found;
    }

    /** A number for each cache that a plan reads, separated by blanks. */
    public String cachedRelations(LogicalPlan plan) {
        StringBuilder found = new StringBuilder();
        List leaves = leavesOf(plan);
        for (int i = 0; i < leaves.size(); i++) {
            if (leaves.get(i) instanceof InMemoryRelation) {
                found.append(System.identityHashCode(((InMemoryRelation) leaves.get(i)).cacheBuilder())).append(' ');
            }
        }
        return found.toString();
    }

    /** The names of an object's class, and of all that it extends and implements, separated by blanks. */
    public String types(Object object) {
        LinkedHashMap found = new LinkedHashMap();
        addTypes(object.getClass(), found);
        StringBuilder names = new StringBuilder();
        java.util.Iterator each = found.keySet().iterator();
        while (each.hasNext()) {
            names.append(((Class) each.next()).getName()).append(' ');
        }
        return names.toString();
    }

    private static void addTypes(Class type, Map into) {
        if (type != null && into.put(type, type) == null) {
            Class[] interfaces = type.getInterfaces();
            for (int i = 0; i < interfaces.length; i++) {
                addTypes(interfaces[i], into);
            }
            addTypes(type.getSuperclass(), into);
        }
    }

    private static void addPaths(RDD rdd, List found) {
        if (rdd.getCheckpointFile().isDefined()) {
            // A checkpoint's rows are read from its files, and from nothing before it.
            found.add(Arrays.asList(new Object[] {rdd.getCheckpointFile().get(), Boolean.TRUE}));
        } else if (rdd instanceof FileScanRDD) {
            HashSet folders = new HashSet();
            Iterator partitions = ((FileScanRDD) rdd).filePartitions().iterator();
            while (partitions.hasNext()) {
                PartitionedFile[] files = ((FilePartition) partitions.next()).files();
                for (int i = 0; i < files.length; i++) {
                    Path file = files[i].filePath().toPath();
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
        for (int i = 0; i < each.length; i++) {
            if (each[i].length() > 0) {
                found.add(Arrays.asList(new Object[] {each[i].replace("\\,", ","), Boolean.FALSE}));
            }
        }
    }

    private static List strings(Iterator objects) {
        List found = new ArrayList();
        while (objects.hasNext()) {
            found.add(objects.next().toString());
        }
        return found;
    }

    private static Map texts(scala.collection.Map map) {
        Map found = new TreeMap();
        Iterator entries = map.iterator();
        while (entries.hasNext()) {
            Tuple2 entry = (Tuple2) entries.next();
            found.put(entry._1(), entry._2());
        }
        return found;
    }

    /**
     * Deflated: an answer that does not fit into the gateway's buffer of 8 KB goes out in two packets, and the second
     * waits until the other side acknowledges the first, which takes it 40 ms.
     */
    private static byte[] deflated(Object facts) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DeflaterOutputStream out = new DeflaterOutputStream(bytes);
        out.write(JSON.writeValueAsBytes(facts));
        out.close();
        return bytes.toByteArray();
    }
}
