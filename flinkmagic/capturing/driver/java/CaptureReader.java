package flinkmagic.capturing.driver;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

import flinkmagic.jvm.Reflect;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTablePartition;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.sources.DataSourceRegister;
import scala.Option;
import scala.Tuple2;
import scala.collection.JavaConverters;

/**
 * Answers what a capture asks the driver, each question in one call from Python. Executes nothing.
 */
public class CaptureReader {
    /**
     * Whether a query is analysed only as part of another query, one of whose columns it names (`Column.outer`). From
     * 4.0 on a Dataset asks `QueryExecution.isLazyAnalysis`, as this does.
     */
    public boolean isPartOfAnother(QueryExecution query) throws Exception {
        return Boolean.TRUE.equals(Reflect.callIfAny(query, "isLazyAnalysis"));
    }

    /** The expression ids of a query's output, separated by blanks; none for a query that is part of another. */
    public String outputIds(QueryExecution query) throws Exception {
        StringBuilder ids = new StringBuilder();
        if (isPartOfAnother(query)) {
            return "";
        }
        for (Object column : JavaConverters.asJavaIterable(((QueryPlan) query.analyzed()).output())) {
            ids.append(((Attribute) column).exprId().id()).append(' ');
        }
        return ids.toString();
    }

    /** The current catalog and namespace, the SQL configuration and Hadoop's settings, as deflated JSON. */
    public byte[] state(SessionState state, SparkContext context) throws Exception {
        Map<String, Object> facts = new LinkedHashMap<String, Object>();
        facts.put("catalog", state.catalogManager().currentCatalog().name());
        facts.put("namespace", Arrays.asList(state.catalogManager().currentNamespace()));
        facts.put("conf", texts(state.conf().getAllConfs()));
        facts.put("hadoop", hadoopSettings(context.hadoopConfiguration()));
        return Reflect.deflated(facts);
    }

    /** What was set in a context's Hadoop configuration, as deflated JSON. */
    public byte[] hadoop(Configuration configuration) throws Exception {
        return Reflect.deflated(hadoopSettings(configuration));
    }

    /** By name, Hadoop's own value of settings that were not set; null if it has none. As deflated JSON. */
    public byte[] hadoopDefaults(List<String> names) throws Exception {
        Configuration unset = new Configuration();
        Map<String, String> defaults = new TreeMap<String, String>();
        for (String name : names) {
            defaults.put(name, unset.getRaw(name));
        }
        return Reflect.deflated(defaults);
    }

    /** All that does not come from Hadoop's own default files. */
    private static Map hadoopSettings(Configuration conf) {
        Map<String, String> settings = new TreeMap<String, String>();
        for (Map.Entry<String, String> entry : conf) {
            String[] sources = conf.getPropertySources((String) entry.getKey());
            if (sources == null || sources.length == 0 || !sources[sources.length - 1].endsWith("-default.xml")) {
                settings.put((String) entry.getKey(), (String) entry.getValue());
            }
        }
        return settings;
    }

    /** What a command writes and where, as deflated JSON. */
    public byte[] fileWrite(InsertIntoHadoopFsRelationCommand command, SessionState state) throws Exception {
        FileFormat format = command.fileFormat();
        Map<String, Object> facts = new LinkedHashMap<String, Object>();
        facts.put("path", command.outputPath().toString());
        facts.put("file", command.outputPath().getName());
        facts.put("mode", command.mode().toString());
        facts.put("format", format instanceof DataSourceRegister
            ? ((DataSourceRegister) format).shortName() : format.toString().toLowerCase(Locale.ROOT));
        facts.put("options", texts(command.options()));
        List columns = new ArrayList();
        for (Attribute column : JavaConverters.asJavaIterable(command.partitionColumns())) {
            columns.add(column.name());
        }
        facts.put("columns", columns);
        facts.put("dynamic", Boolean.valueOf(isDynamic(command, state)));
        facts.put("elsewhere", command.catalogTable().isEmpty() ? new ArrayList()
            : foldersElsewhere((CatalogTable) command.catalogTable().get(), state));
        facts.put("table", Boolean.valueOf(command.catalogTable().isDefined()));
        return Reflect.deflated(facts);
    }

    /** The command's own answer follows the configuration of the thread's session, which may be another one's. */
    private static boolean isDynamic(InsertIntoHadoopFsRelationCommand command, SessionState state) {
        String overwrites = state.conf().getConfString("spark.sql.sources.partitionOverwriteMode", "static");
        for (Tuple2 option : JavaConverters.asJavaIterable(command.options())) {
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
            return Reflect.deflated(new ArrayList());
        }
        HadoopFsRelation files = (HadoopFsRelation) leaf.relation();
        return partitionsElsewhere((CatalogTable) leaf.catalogTable().get(), files.sparkSession().sessionState());
    }

    /** The folders of a table's partitions that lie outside the table's folder, as deflated JSON. */
    public byte[] partitionsElsewhere(CatalogTable table, SessionState state) throws Exception {
        return Reflect.deflated(foldersElsewhere(table, state));
    }

    private static List foldersElsewhere(CatalogTable table, SessionState state) {
        List<String> found = new ArrayList<String>();
        if (table.partitionColumnNames().isEmpty() || table.storage().locationUri().isEmpty()) {
            return found;
        }
        String home = table.storage().locationUri().get().toString();
        String below = home.endsWith("/") ? home : home + "/";
        scala.collection.Seq partitions = state.catalog().listPartitions(table.identifier(), Option.empty());
        for (Object partition : JavaConverters.asJavaIterable(partitions)) {
            Option folder = ((CatalogTablePartition) partition).storage().locationUri();
            if (folder.isDefined() && !folder.get().toString().startsWith(below)) {
                found.add(new Path((java.net.URI) folder.get()).toString());
            }
        }
        return found;
    }

    /** The names of an object's class, and of all that it extends and implements, separated by blanks. */
    public String types(Object object) {
        LinkedHashSet<Class> found = new LinkedHashSet<Class>();
        addTypes(object.getClass(), found);
        StringBuilder names = new StringBuilder();
        for (Class each : found) {
            names.append(each.getName()).append(' ');
        }
        return names.toString();
    }

    private static void addTypes(Class type, LinkedHashSet<Class> into) {
        if (type != null && into.add(type)) {
            Class[] interfaces = type.getInterfaces();
            for (Class one : interfaces) {
                addTypes(one, into);
            }
            addTypes(type.getSuperclass(), into);
        }
    }

    private static Map texts(scala.collection.Map map) {
        Map found = new TreeMap();
        for (Object each : JavaConverters.asJavaIterable(map)) {
            Tuple2 entry = (Tuple2) each;
            found.put(entry._1(), entry._2());
        }
        return found;
    }
}
