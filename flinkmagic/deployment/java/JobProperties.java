package flinkmagic.deployment;

import java.util.IdentityHashMap;
import java.util.Properties;

import flinkmagic.jvm.Reflect;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.internal.SessionState;
import scala.Tuple2;
import scala.collection.JavaConverters;
import scala.collection.Map;

/**
 * The local properties under which a job's Spark jobs run. Each stage sets them, before its first Spark job: one call
 * from Python, although the configuration of a session has a hundred entries.
 */
public class JobProperties {
    private static final String GROUP = "spark.jobGroup.id";
    private static final String DESCRIPTION = "spark.job.description";
    private static final String TAGS = "spark.job.tags";
    private static final String PLACE = "flinkmagic.stage";
    private static final String[] NOT_INHERITED = {
        "spark.sql.execution.", "callSite.", GROUP, DESCRIPTION, PLACE, "spark.job.interruptOnCancel"
    };

    private final IdentityHashMap<SparkSession, Properties> bySession = new IdentityHashMap<SparkSession, Properties>();
    private SparkContext context;
    private Properties base;

    /**
     * Copies what the calling thread has set, except what names its own work: if the job is that very work, group and
     * description stay the caller's.
     *
     * @param pool for a job whose caller chose none; null if the session has no pools
     */
    public void inherit(SparkContext context, String group, String pool, boolean isCallers) {
        this.context = context;
        this.base = new Properties();
        for (String name : context.getLocalProperties().stringPropertyNames()) {
            if (isInherited(name) || (isCallers && (name.equals(GROUP) || name.equals(DESCRIPTION)))) {
                base.setProperty(name, context.getLocalProperties().getProperty(name));
            }
        }
        if (base.getProperty(GROUP) == null) {
            base.setProperty(GROUP, group);
        }
        // A task that waits for a Python worker or a socket ends immediately only when its thread is interrupted.
        base.setProperty("spark.job.interruptOnCancel", "true");
        if (pool != null && base.getProperty("spark.scheduler.pool") == null) {
            base.setProperty("spark.scheduler.pool", pool);
        }
    }

    /**
     * Adds the tags that Spark itself gives to the jobs of a session's queries that the calling thread starts: by them
     * `interruptAll` and `interruptTag` find those (4.0 and newer).
     */
    public void tagAs(SparkSession session) throws Exception {
        Object ofThread = Reflect.callIfAny(session, "managedJobTags");
        if (ofThread == null) {
            return;
        }
        StringBuilder tags = new StringBuilder().append(Reflect.call(session, "sessionJobTag"));
        for (Object own : JavaConverters.asJavaIterable(((Map) ((ThreadLocal) ofThread).get()).values())) {
            tags.append(",").append(own);
        }
        base.setProperty(TAGS, withOwn(tags.toString()));
    }

    private String withOwn(String tags) {
        String own = base.getProperty(TAGS);
        return own == null || own.isEmpty() ? tags : own + "," + tags;
    }

    /**
     * Sets the calling thread's properties, and its active session, instead of those that it has.
     *
     * @param place of the stage in its run; empty for a job that is none of its stages
     */
    public void enter(String tag, String description, String place, SparkSession session) throws Exception {
        Properties properties = (Properties) in(session).clone();
        properties.setProperty(TAGS, withOwn(tag));
        if (!place.isEmpty()) {
            properties.setProperty(PLACE, place);
        }
        if (base.getProperty(DESCRIPTION) == null) {
            properties.setProperty(DESCRIPTION, description);
        }
        // Else each stage is called "shuffleDependency at NativeMethodAccessorImpl.java:0", and keeps the JVM's stack.
        properties.setProperty("callSite.short", description);
        properties.setProperty("callSite.long", description);
        context.setLocalProperties(properties);
        if (session != null) {
            SparkSession.setActiveSession(session);
        } else {
            SparkSession.clearActiveSession();  // the thread may have run another job's stage
        }
    }

    private synchronized Properties in(SparkSession session) throws Exception {
        if (session == null) {
            return base;
        }
        Properties known = (Properties) bySession.get(session);
        if (known == null) {
            known = (Properties) base.clone();
            // Sessions of 4.x have it in a class of their own.
            SessionState state = (SessionState) Reflect.call(session, "sessionState");
            for (Tuple2 entry : JavaConverters.asJavaIterable(state.conf().getAllConfs())) {
                if (((String) entry._1()).startsWith("spark")) {
                    known.setProperty((String) entry._1(), (String) entry._2());
                }
            }
            bySession.put(session, known);
        }
        return known;
    }

    private static boolean isInherited(String name) {
        for (String one : NOT_INHERITED) {
            if (name.startsWith(one)) {
                return false;
            }
        }
        return true;
    }
}
