package flinkmagic.planning;

import java.util.ArrayList;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/**
 * Which selection a scan of kept rows belongs to, written into the qualifiers of its columns.
 *
 * Tags of tree nodes do not survive the optimiser, which clones a relation without them. Qualifiers do, and after
 * analysis nothing looks at them: columns are bound by their expression ids, and canonical plans have no qualifiers.
 */
public class SelectedRows {
    private static final String MARK = "flinkmagic selects";

    /** The columns, marked. */
    public static scala.collection.immutable.Vector marked(Seq<Attribute> columns, String which) {
        ArrayList<String> words = new ArrayList<String>();
        words.add(MARK);
        words.add(which);
        ArrayList marked = new ArrayList();
        for (Attribute column : JavaConverters.asJavaIterable(columns)) {
            marked.add(column.withQualifier(PlanNodes.vector(words)));
        }
        return PlanNodes.vector(marked);
    }

    /** What the columns of a scan's relation were marked with; null if they were not. */
    public static String of(InMemoryTableScanExec scan) {
        Seq columns = (Seq) scan.relation().output();
        if (columns.isEmpty()) {
            return null;
        }
        Seq words = (Seq) ((Attribute) columns.head()).qualifier();
        return words.size() == 2 && words.head().equals(MARK) ? (String) words.apply(1) : null;
    }
}
