package flinkmagic.deployment;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.concurrent.ConcurrentHashMap;

import flinkmagic.jvm.Reflect;
import org.apache.spark.sql.Observation;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.Row$;
import org.apache.spark.sql.catalyst.plans.logical.CollectMetrics;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.util.ExecutionListenerManager;
import org.apache.spark.sql.util.QueryExecutionListener;
import scala.Option;
import scala.Tuple2;
import scala.collection.JavaConverters;
import scala.collection.immutable.Map;
import scala.concurrent.Promise;

/**
 * The user's observations that a job completes. While it runs they are kept from Spark, which completes an observation
 * with the first query of the session that ends, successfully or not: with an attempt of a write that is made again, or
 * with a query whose plan begins where a stage of the job ended.
 *
 * Spark keeps them in the session's ObservationManager (4.x), or each has a listener of its own (3.5).
 */
public class Observations {
    private final Object session;
    /** By name, the key under which Spark has an observation, and the observation. */
    private final HashMap<String, Object[]> held = new HashMap<String, Object[]>();

    public Observations(Object session) {
        this.session = session;
    }

    /** Takes over the observations of a query that are not completed or held already; returns a name for each. */
    public synchronized String[] hold(LogicalPlan query) throws Exception {
        ArrayList<CollectMetrics> found = new ArrayList<CollectMetrics>();
        collect(query, found);
        ArrayList<String> names = new ArrayList<String>();
        for (CollectMetrics metrics : found) {
            Tuple2 key = new Tuple2(metrics.name(), Long.valueOf(metrics.dataframeId()));
            String name = metrics.dataframeId() + "/" + metrics.name();
            if (!held.containsKey(name)) {
                Observation observation = take(key);
                if (observation != null) {
                    held.put(name, new Object[] {key, observation});
                }
            }
            if (held.containsKey(name) && !names.contains(name)) {
                names.add(name);
            }
        }
        return (String[]) names.toArray(new String[0]);
    }

    /** Completes an observation; false if a query has no metrics for it. */
    public synchronized boolean complete(String name, Map metrics) throws Exception {
        Object[] one = (Object[]) held.get(name);
        Observation observation = (Observation) one[1];
        Option row = metrics.get(observation.name());
        if (row.isEmpty()) {
            return false;
        }
        held.remove(name);
        complete(observation, (Row) row.get());
        return true;
    }

    /** The query that would have completed an observation is done, and its optimizer removed the operator. */
    public synchronized void completeWithNothing(String name) throws Exception {
        Object[] one = (Object[]) held.get(name);
        if (one != null && manager() != null) {  // 3.5 continues to wait for a query that has it
            held.remove(name);
            complete((Observation) one[1], Row$.MODULE$.empty());
        }
    }

    /** Lets Spark complete the remaining ones. */
    public synchronized void giveBack() throws Exception {
        Object[] left = held.values().toArray();
        held.clear();
        for (Object each : left) {
            Object[] one = (Object[]) each;
            if (manager() != null) {
                known().putIfAbsent(one[0], one[1]);
            } else {
                listeners().register(listenerOf((Observation) one[1]));
            }
        }
    }

    private static void collect(LogicalPlan plan, ArrayList<CollectMetrics> found) {
        if (plan instanceof CollectMetrics) {
            found.add((CollectMetrics) plan);
        }
        for (LogicalPlan child : JavaConverters.asJavaIterable(plan.children())) {
            collect(child, found);
        }
        for (LogicalPlan subquery : JavaConverters.asJavaIterable(plan.subqueries())) {
            collect(subquery, found);
        }
    }

    private Observation take(Tuple2 key) throws Exception {
        if (manager() != null) {
            return (Observation) known().remove(key);
        }
        QueryExecutionListener[] all = listeners().listListeners();
        for (QueryExecutionListener each : all) {
            if (each.getClass().getName().equals("org.apache.spark.sql.ObservationListener")) {
                Observation observation = (Observation) Reflect.call(each, "observation");
                Option id = (Option) Reflect.call(observation, "dataframeId");
                if (observation.name().equals(key._1()) && id.isDefined() && id.get().equals(key._2())) {
                    listeners().unregister(each);
                    return observation;
                }
            }
        }
        return null;
    }

    private static void complete(Observation observation, Row row) throws Exception {
        ((Promise) Reflect.call(observation, "promise")).trySuccess(row);
    }

    /** The session's ObservationManager; null on 3.5, which has none. */
    private Object manager() throws Exception {
        return Reflect.callIfAny(session, "observationManager");
    }

    private ConcurrentHashMap known() throws Exception {
        Object manager = manager();
        return (ConcurrentHashMap) Reflect.field(manager.getClass(), "observations").get(manager);
    }

    private ExecutionListenerManager listeners() throws Exception {
        return (ExecutionListenerManager) Reflect.call(session, "listenerManager");
    }

    private static QueryExecutionListener listenerOf(Observation observation) throws Exception {
        return (QueryExecutionListener) Reflect.call(observation, "listener");
    }
}
