package flinkmagic.reuse;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;

import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerUnpersistRDD;

/**
 * How often an RDD was unpersisted: persisted again it keeps its id, but its rows are computed anew.
 *
 * Seen on Spark 3.5 and 4.3.
 */
public class PersistedRdds extends SparkListener {
    private static final long PATIENCE_MS = 2000;

    private final ConcurrentHashMap<Integer, Integer> counts = new ConcurrentHashMap<Integer, Integer>();
    private SparkContext context = null;

    /** Learns from now on of what is unpersisted in a context; the ids of another one start anew. */
    public synchronized void follow(SparkContext sc) {
        if (context != sc) {
            context = sc;
            counts.clear();
            sc.addSparkListener(this);
        }
    }

    /** The context that is followed. */
    public SparkContext context() {
        return context;
    }

    @Override
    public void onUnpersistRDD(SparkListenerUnpersistRDD event) {
        Integer id = Integer.valueOf(event.rddId());
        Integer known = (Integer) counts.get(id);
        counts.put(id, Integer.valueOf(known == null ? 1 : known.intValue() + 1));
    }

    /** Tells the rows that an RDD keeps from those it kept before; null if Spark's events come too late to tell. */
    public String rowsOf(int id) throws Exception {
        try {
            context.listenerBus().waitUntilEmpty(PATIENCE_MS);
        } catch (TimeoutException late) {
            return null;
        }
        Integer count = (Integer) counts.get(Integer.valueOf(id));
        return id + " after " + (count == null ? 0 : count.intValue());
    }
}
