package flinkmagic.jvm;

import java.io.ByteArrayOutputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.zip.DeflaterOutputStream;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.spark.unsafe.Platform;
import scala.Option;

/**
 * What classes of all packages use: reaches what differs between versions of Spark, and what Spark does not show; and
 * makes answers to Python.
 */
public class Reflect {
    private static final ObjectMapper JSON = new ObjectMapper();

    /**
     * An answer as deflated JSON: one that does not fit into the gateway's buffer of 8 KB goes out in two packets, and
     * the second waits until the other side acknowledges the first, which takes it 40 ms.
     */
    public static byte[] deflated(Object answer) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DeflaterOutputStream out = new DeflaterOutputStream(bytes);
        out.write(JSON.writeValueAsBytes(answer));
        out.close();
        return bytes.toByteArray();
    }

    /** A field of a class; Scala may have put the class's name before its own. */
    public static Field field(Class of, String name) throws NoSuchFieldException {
        for (Field each : of.getDeclaredFields()) {
            if (each.getName().equals(name) || each.getName().endsWith("$$" + name)) {
                each.setAccessible(true);
                return each;
            }
        }
        throw new NoSuchFieldException(of.getName() + "." + name);
    }

    /** What the fields of an object hold that are declared by one of its classes. */
    public static ArrayList<Object> held(Object object, Class of) throws Exception {
        ArrayList<Object> found = new ArrayList<Object>();
        for (Field each : of.getDeclaredFields()) {
            if (!Modifier.isStatic(each.getModifiers())) {
                each.setAccessible(true);
                found.add(each.get(object));
            }
        }
        return found;
    }

    /** What a method without parameters returns, or raises. */
    public static Object call(Object object, String name) throws Exception {
        Method method = method(object.getClass(), name);
        if (method == null) {
            throw new NoSuchMethodException(object.getClass().getName() + "." + name);
        }
        return invoke(method, object, new Object[0]);
    }

    /** The same; null if the object has no such method. */
    public static Object callIfAny(Object object, String name) throws Exception {
        Method method = method(object.getClass(), name);
        return method == null ? null : invoke(method, object, new Object[0]);
    }

    /** A method without parameters; null if there is none. */
    public static Method method(Class of, String name) {
        try {
            return of.getMethod(name, new Class[0]);
        } catch (NoSuchMethodException notPublic) {
            try {
                Method method = of.getDeclaredMethod(name, new Class[0]);
                method.setAccessible(true);
                return method;
            } catch (NoSuchMethodException none) {
                return null;
            }
        }
    }

    /** What a method returns, or raises, that takes the arguments, or in some versions only the last of them. */
    public static Object call(Object object, String name, Object[] arguments) throws Exception {
        for (Method each : object.getClass().getMethods()) {
            Class[] types = each.getParameterTypes();
            if (each.getName().equals(name) && types[types.length - 1].isInstance(arguments[arguments.length - 1])) {
                int left = arguments.length - types.length;
                return invoke(each, object, Arrays.copyOfRange(arguments, left, arguments.length));
            }
        }
        throw new NoSuchMethodException(object.getClass().getName() + "." + name);
    }

    /** What a method returns, or raises. */
    public static Object invoke(Method method, Object object, Object[] arguments) throws Exception {
        try {
            return method.invoke(object, arguments);
        } catch (InvocationTargetException raised) {
            Platform.throwException(raised.getCause());
            return null;
        }
    }

    /** An object of one of our own classes: an array of arguments would take Python three calls. */
    public static Object made(Constructor constructor, Object first) throws Exception {
        return constructor.newInstance(new Object[] {first});
    }

    public static Object made(Constructor constructor, Object first, Object second) throws Exception {
        return constructor.newInstance(new Object[] {first, second});
    }

    public static Object made(Constructor constructor, Object first, Object second, Object third) throws Exception {
        return constructor.newInstance(new Object[] {first, second, third});
    }

    /**
     * An object of a class with one constructor, whose parameters are more in some versions. There each gets the first
     * argument of its type that none before it has got; where there is none, it gets false, `None` or null.
     */
    public static Object make(Class of, Object[] arguments) throws Exception {
        Constructor constructor = of.getConstructors()[0];
        Class[] types = constructor.getParameterTypes();
        try {
            return constructor.newInstance(types.length > arguments.length ? fitted(arguments, types) : arguments);
        } catch (InvocationTargetException raised) {
            Platform.throwException(raised.getCause());
            return null;
        }
    }

    private static Object[] fitted(Object[] arguments, Class[] types) {
        Object[] given = new Object[types.length];
        Object[] left = (Object[]) arguments.clone();
        for (int i = 0; i < types.length; i++) {
            Object none = types[i] == Option.class ? Option.empty() : null;
            given[i] = types[i] == boolean.class ? Boolean.FALSE : none;
            for (int j = 0; j < left.length; j++) {
                if (types[i].isInstance(left[j])) {
                    given[i] = left[j];
                    left[j] = null;
                    break;
                }
            }
        }
        return given;
    }
}
