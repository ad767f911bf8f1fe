import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwrite;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A catalog of tables in memory that are partitioned by their first column, an INT, before one BIGINT: none that Spark
 * brings along overwrites partitions dynamically, or by a condition (here one value of the first column). Local mode
 * only.
 */
public class PartitionedCatalog implements TableCatalog {
    private String name;
    private final Map tables = new HashMap();

    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
    }

    public String name() {
        return name;
    }

    public Identifier[] listTables(String[] namespace) {
        return (Identifier[]) tables.keySet().toArray(new Identifier[0]);
    }

    public org.apache.spark.sql.connector.catalog.Table loadTable(Identifier identifier) throws NoSuchTableException {
        if (!tables.containsKey(identifier)) {
            throw new NoSuchTableException(identifier);
        }
        return (Rows) tables.get(identifier);
    }

    public org.apache.spark.sql.connector.catalog.Table createTable(
            Identifier identifier, StructType schema, Transform[] partitions, Map properties) {
        Rows made = new Rows(identifier.name(), schema);
        tables.put(identifier, made);
        return made;
    }

    public org.apache.spark.sql.connector.catalog.Table alterTable(Identifier identifier, TableChange[] changes) {
        throw new UnsupportedOperationException("alterTable");
    }

    public boolean dropTable(Identifier identifier) {
        return tables.remove(identifier) != null;
    }

    public void renameTable(Identifier from, Identifier to) {
        throw new UnsupportedOperationException("renameTable");
    }

    static class Rows implements SupportsRead, SupportsWrite {
        private final String name;
        private final StructType schema;
        private List rows = new ArrayList();

        Rows(String name, StructType schema) {
            this.name = name;
            this.schema = schema;
        }

        public String name() {
            return name;
        }

        public StructType schema() {
            return schema;
        }

        public Transform[] partitioning() {
            return new Transform[] {Expressions.identity(schema.fieldNames()[0])};
        }

        public Set capabilities() {
            return new HashSet(Arrays.asList(new Object[] {
                TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.OVERWRITE_DYNAMIC,
                TableCapability.OVERWRITE_BY_FILTER
            }));
        }

        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
            return new Reading(schema, new ArrayList(rows));
        }

        public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
            return new Writing(this);
        }

        synchronized void add(List added, boolean overwritesPartitions, Set overwritten) {
            Set gone = new HashSet(overwritten);
            for (int i = 0; overwritesPartitions && i < added.size(); i++) {
                gone.add(((Object[]) added.get(i))[0]);
            }
            List kept = new ArrayList();
            for (int i = 0; i < rows.size(); i++) {
                if (!gone.contains(((Object[]) rows.get(i))[0])) {
                    kept.add(rows.get(i));
                }
            }
            kept.addAll(added);
            rows = kept;
        }
    }

    static class Reading implements ScanBuilder, Scan, Batch, InputPartition, PartitionReaderFactory {
        private final StructType schema;
        private final ArrayList rows;

        Reading(StructType schema, ArrayList rows) {
            this.schema = schema;
            this.rows = rows;
        }

        public Scan build() {
            return this;
        }

        public StructType readSchema() {
            return schema;
        }

        public Batch toBatch() {
            return this;
        }

        public InputPartition[] planInputPartitions() {
            return new InputPartition[] {this};
        }

        public PartitionReaderFactory createReaderFactory() {
            return this;
        }

        public PartitionReader createReader(InputPartition partition) {
            return new Reader(((Reading) partition).rows);
        }
    }

    static class Reader implements PartitionReader {
        private final List rows;
        private int next = -1;

        Reader(List rows) {
            this.rows = rows;
        }

        public boolean next() {
            next++;
            return next < rows.size();
        }

        public Object get() {
            return new GenericInternalRow((Object[]) rows.get(next));
        }

        public void close() {
        }
    }

    static class Writing implements SupportsDynamicOverwrite, SupportsOverwrite, Write, BatchWrite {
        private final Rows table;
        private final Set overwritten = new HashSet();
        private boolean overwritesPartitions;

        Writing(Rows table) {
            this.table = table;
        }

        public WriteBuilder overwriteDynamicPartitions() {
            overwritesPartitions = true;
            return this;
        }

        public WriteBuilder overwrite(Filter[] filters) {
            for (int i = 0; i < filters.length; i++) {
                if (filters[i] instanceof EqualTo) {
                    overwritten.add(((EqualTo) filters[i]).value());
                }
            }
            return this;
        }

        public Write build() {
            return this;
        }

        public BatchWrite toBatch() {
            return this;
        }

        public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
            return new Writers();
        }

        public void commit(WriterCommitMessage[] messages) {
            List added = new ArrayList();
            for (int i = 0; i < messages.length; i++) {
                added.addAll(((Written) messages[i]).rows);
            }
            table.add(added, overwritesPartitions, overwritten);
        }

        public void abort(WriterCommitMessage[] messages) {
        }
    }

    static class Writers implements DataWriterFactory {
        public DataWriter createWriter(int partition, long task) {
            return new Writer();
        }
    }

    static class Writer implements DataWriter {
        private final Written written = new Written();

        public void write(Object record) {
            InternalRow row = (InternalRow) record;
            written.rows.add(new Object[] {Integer.valueOf(row.getInt(0)), Long.valueOf(row.getLong(1))});
        }

        public WriterCommitMessage commit() {
            return written;
        }

        public void abort() {
        }

        public void close() {
        }
    }

    static class Written implements WriterCommitMessage, Serializable {
        final ArrayList rows = new ArrayList();
    }
}
