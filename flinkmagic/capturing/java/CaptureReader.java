package flinkmagic.capturing;

import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.DeflaterOutputStream;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.sources.DataSourceRegister;
import scala.Tuple2;
import scala.collection.Iterator;

/**
 * Reads what a capture asks the driver for, each in one call from Python. Nothing is executed.
 *
 * Written for Janino: no lambdas, no type inference, raw collections.
 */
public class CaptureReader {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** The expression ids of a query's output, separated by blanks. */
    public String outputIds(QueryExecution query) {
        StringBuilder ids = new StringBuilder();
        Iterator output = ((QueryPlan) query.analyzed()).output().iterator();
        while (output.hasNext()) {
            ids.append(((Attribute) output.next()).exprId().id()).append(' ');
        }
        return ids.toString();
    }

    /** The current catalog and namespace, and the SQL configuration that was set, as deflated JSON. */
    public byte[] state(SessionState state) throws Exception {
        Map facts = new LinkedHashMap();
        facts.put("catalog", state.catalogManager().currentCatalog().name());
        facts.put("namespace", Arrays.asList(state.catalogManager().currentNamespace()));
        facts.put("conf", texts(state.conf().getAllConfs()));
        return deflated(facts);
    }

    /**
     * The leaves of an analysed plan and of its subqueries, as deflated JSON: for each its class and, where it reads
     * files that belong to no table, the folders, and whether its DataFrame listed them.
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
        facts.put("paths", strings(index.rootPaths().iterator()));
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

    /** What a command writes where, as deflated JSON. */
    public byte[] fileWrite(InsertIntoHadoopFsRelationCommand command) throws Exception {
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
        facts.put("dynamic", Boolean.valueOf(command.dynamicPartitionOverwrite()));
        facts.put("table", Boolean.valueOf(command.catalogTable().isDefined()));
        return deflated(facts);
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
     * Deflated, because an answer that does not fit into the gateway's buffer of 8 KB goes out in two packets, and the
     * second waits for the acknowledgement of the first, which the other side delays by 40 ms.
     */
    private static byte[] deflated(Object facts) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DeflaterOutputStream out = new DeflaterOutputStream(bytes);
        out.write(JSON.writeValueAsBytes(facts));
        out.close();
        return bytes.toByteArray();
    }
}
