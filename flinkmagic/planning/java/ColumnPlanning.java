package flinkmagic.planning;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;

import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.storage.StorageLevel;

/** A query that is planned: what it may read of kept columns of its text sources, and what of these it may keep. */
public class ColumnPlanning {
    private final ColumnStore store;
    private final IdentityHashMap sources = new IdentityHashMap();
    private SessionState state;
    private StorageLevel level;
    private Scans scans;

    public ColumnPlanning(ColumnStore store) {
        this.store = store;
    }

    /**
     * Make a source known, by the key of its rows.
     *
     * @param name what is kept of it is called
     * @param bytes the length of its files
     * @param share how much of it, as a share of all columns of all rows, may be kept while the query reads it
     */
    public Source know(LogicalRelation leaf, String key, String name, long bytes, double share) {
        Source source = new Source(this, key, name, bytes, share);
        sources.put(leaf.relation(), source);
        return source;
    }

    /** On which session it is planned, and where columns are kept. */
    public void on(SessionState state, StorageLevel level) {
        this.state = state;
        this.level = level;
    }

    /** Where the rows of scans come from below what is kept of the query. */
    public void scanBy(Scans scans) {
        this.scans = scans;
    }

    /** What is known of a source, by its ``BaseRelation``; null if that is nothing. */
    public Source sourceOf(Object relation) {
        return (Source) sources.get(relation);
    }

    /** Where columns are kept; null before anything is planned. */
    public StorageLevel level() {
        return level;
    }

    /** The relations whose rows it keeps or reads. */
    public InMemoryRelation[] relations() {
        ArrayList found = new ArrayList();
        Iterator each = sources.values().iterator();
        while (each.hasNext()) {
            KeptColumns one = ((Source) each.next()).columns();
            if (one != null) {
                found.add(one.relation());
            }
        }
        return (InMemoryRelation[]) found.toArray(new InMemoryRelation[0]);
    }

    /** Reads scans of files in another way than Spark does. */
    public interface Scans {
        /** Let the scans of a plan that has not run be read so. */
        void readIn(SparkPlan plan) throws Exception;
    }

    /** A source of the query. */
    public static class Source {
        private final ColumnPlanning planning;
        private final String key;
        private final String name;
        private final long bytes;
        private final double share;
        private final ArrayList parsed = new ArrayList();
        private KeptColumns filling;
        private boolean isRead = false;
        private boolean isReadWhole = false;

        Source(ColumnPlanning planning, String key, String name, long bytes, double share) {
            this.planning = planning;
            this.key = key;
            this.name = name;
            this.bytes = bytes;
            this.share = share;
        }

        /** The columns of it that the query keeps, else those that are kept already; null if there are none. */
        public KeptColumns columns() {
            return filling != null ? filling : planning.store.of(key);
        }

        /** Whether the query keeps columns of it. */
        public boolean isKept() {
            return filling != null;
        }

        /** What the query keeps of it; null if that is nothing. */
        public KeptColumns filling() {
            return filling;
        }

        /** The key of its rows. */
        public String key() {
            return key;
        }

        /** What is kept of it is called so. */
        public String name() {
            return name;
        }

        /** The length of its files. */
        public long bytes() {
            return bytes;
        }

        /** How much, as a share of all columns of all rows, may be kept while the query reads it. */
        public double share() {
            return share;
        }

        /**
         * Has columns kept while the query reads them, if that is allowed and one of them was read before.
         *
         * @param lacking those of them that are not kept already
         */
        public boolean keep(KeptColumns columns, List lacking) throws Exception {
            if (columns.share() > share || !planning.store.isSeen(key, lacking)) {
                parsed.addAll(lacking);
                return false;
            }
            columns.plan(planning.state, planning.level, name);
            if (planning.scans != null) {
                planning.scans.readIn(columns.relation().cacheBuilder().cachedPlan());
            }
            filling = columns;
            return true;
        }

        /** Note that the query reads columns that are kept already. */
        public void read() {
            isRead = true;
        }

        /** Note that the query surely reads all of it. */
        public void readWhole() {
            isReadWhole = true;
        }

        /** Whether the query reads columns that are kept already. */
        public boolean isRead() {
            return isRead;
        }

        /** Whether the query surely reads all of it; null if it was not planned here. */
        public Boolean isReadWhole() {
            return planning.state == null ? null : Boolean.valueOf(isReadWhole);
        }

        /** Note what the query has read of it from its files. */
        public void note() {
            planning.store.see(key, parsed);
        }

        /** Let later queries read what it has kept of it. */
        public void hand() {
            planning.store.keep(key, filling);
        }
    }
}
