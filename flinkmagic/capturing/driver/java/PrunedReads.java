package flinkmagic.capturing.driver;

import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.HashSet;
import java.util.Set;

import flinkmagic.jvm.Reflect;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import scala.Function1;
import scala.collection.JavaConverters;
import scala.collection.immutable.Nil$;
import scala.runtime.AbstractFunction1;

/**
 * Tells which of the files that were listed when DataFrames were made a query is going to read: Spark leaves out
 * partitions that a filter excludes. Executes nothing and lists nothing.
 */
public class PrunedReads {
    /**
     * The folders of those files, and files that are links or were named themselves, as deflated JSON; null if it
     * cannot be told, because the query reads retained rows or has subqueries, whose plans are made when it runs.
     */
    public byte[] places(QueryExecution query) throws Exception {
        if (!((QueryPlan) query.optimizedPlan()).subqueriesAll().isEmpty()) {
            return Reflect.deflated(null);
        }
        HashSet found = new HashSet();
        for (Object leaf : JavaConverters.asJavaIterable(query.sparkPlan().collectLeaves())) {
            if (leaf.getClass().getSimpleName().equals("InMemoryTableScanExec")) {
                return Reflect.deflated(null);
            }
            if (leaf instanceof FileSourceScanExec) {
                FileSourceScanExec scan = (FileSourceScanExec) leaf;
                if (scan.relation().location() instanceof InMemoryFileIndex) {
                    add(scan.relation().location(), scan.partitionFilters().toList(), found);
                }
            }
        }
        return Reflect.deflated(found);
    }

    /** Any version of Scala accepts a Scala list as the sequence that Spark takes. */
    private static void add(FileIndex index, scala.collection.immutable.List filters, HashSet found) {
        Set<String> named = LeafReader.named(index);
        scala.collection.immutable.List known =
            (scala.collection.immutable.List) ((scala.collection.Iterable) filters).filter(WITHOUT_PLANS);
        scala.collection.immutable.List none = (scala.collection.immutable.List) ((Object) Nil$.MODULE$);
        for (Object folder : JavaConverters.asJavaIterable(index.listFiles(known, none))) {
            for (FileStatusWithMetadata listed : JavaConverters.asJavaIterable(((PartitionDirectory) folder).files())) {
                Path file = listed.getPath();
                boolean isOne = named.contains(file.toUri().getPath());
                if (!isOne) {
                    found.add(file.getParent().toString());
                }
                if (isOne || "file".equals(file.toUri().getScheme())
                    && Files.isSymbolicLink(Paths.get(file.toUri().getPath(), new String[0]))) {
                    found.add(file.toString());
                }
            }
        }
    }

    private static final Function1 WITHOUT_PLANS = new AbstractFunction1() {
        @Override
        public Object apply(Object filter) {
            return Boolean.valueOf(!((Expression) filter).containsPattern(TreePattern.PLAN_EXPRESSION()));
        }
    };
}
