package fencepost;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.OptionalInt;

/** Reaches what Kafka keeps to itself, and bridges the small differences between its releases. */
final class Reflect {
    private Reflect() { }

    /** A field of the class or of one above it, made readable. */
    static Field field(Class<?> type, String name) {
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            try {
                Field field = at.getDeclaredField(name);
                field.setAccessible(true);
                return field;
            } catch (NoSuchFieldException above) {
                continue;
            }
        }
        throw new IllegalStateException("Kafka's " + type.getName() + " has no field " + name);
    }

    static Object get(Field field, Object owner) {
        try {
            return field.get(owner);
        } catch (IllegalAccessException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** A public method without parameters. */
    static Method method(Class<?> type, String name) {
        try {
            Method method = type.getMethod(name);
            method.setAccessible(true);
            return method;
        } catch (NoSuchMethodException missing) {
            throw new IllegalStateException("Kafka's " + type.getName() + " has no method " + name);
        }
    }

    /** The one public method of that name, whatever it takes. */
    static Method named(Class<?> type, String name) {
        for (Method method : type.getMethods()) {
            if (method.getName().equals(name)) {
                method.setAccessible(true);
                return method;
            }
        }
        throw new IllegalStateException("Kafka's " + type.getName() + " has no method " + name);
    }

    /** The one public method of that name with so many parameters; null if this release has none. */
    static Method methodWith(Class<?> type, String name, int parameters) {
        for (Method method : type.getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == parameters) {
                method.setAccessible(true);
                return method;
            }
        }
        return null;
    }

    static Object call(Method method, Object owner, Object... arguments) {
        try {
            return method.invoke(owner, arguments);
        } catch (ReflectiveOperationException failed) {
            throw new IllegalStateException(method + " failed", failed.getCause() == null ? failed : failed.getCause());
        }
    }

    /**
     * Builds an object with the constructor whose parameters can all be filled from the parts, by their types. An
     * interface that no part implements is for something that no trace has (share groups), and does nothing.
     */
    static Object construct(Class<?> type, Object... parts) {
        for (Constructor<?> constructor : type.getDeclaredConstructors()) {
            Object[] arguments = pick(constructor.getParameterTypes(), parts);
            if (arguments != null) {
                try {
                    constructor.setAccessible(true);
                    return constructor.newInstance(arguments);
                } catch (ReflectiveOperationException failed) {
                    throw new IllegalStateException("could not build " + type.getName(), failed);
                }
            }
        }
        throw new IllegalStateException("no constructor of " + type.getName() + " takes the parts that are known");
    }

    static Object made(Constructor<?> constructor, Object... arguments) {
        try {
            return constructor.newInstance(arguments);
        } catch (ReflectiveOperationException failed) {
            throw new IllegalStateException(constructor + " failed", failed);
        }
    }

    private static Object[] pick(Class<?>[] types, Object[] parts) {
        Object[] arguments = new Object[types.length];
        for (int i = 0; i < types.length; i++) {
            for (Object part : parts) {
                if (types[i].isInstance(part)) {
                    arguments[i] = part;
                    break;
                }
            }
            if (arguments[i] == null && types[i].isInterface()) {
                arguments[i] = implement(types[i], (proxy, method, values) -> nothing(method));
            }
            if (arguments[i] == null) {
                return null;
            }
        }
        return arguments;
    }

    /** Calls the builder's "with" methods by name; names that this release does not have are passed over. */
    static void fill(Object builder, Map<String, Object> parts) {
        for (Method method : builder.getClass().getMethods()) {
            Object part = parts.get(method.getName());
            if (part != null && method.getParameterCount() == 1) {
                boolean optional = method.getParameterTypes()[0] == OptionalInt.class;
                method.setAccessible(true);
                call(method, builder, optional ? OptionalInt.of((Integer) part) : part);
            }
        }
    }

    static Class<?> find(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException missing) {
            return null;
        }
    }

    /** An implementation of an interface whose methods differ between releases. */
    static <T> T implement(Class<T> type, InvocationHandler handler) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
    }

    /** What a method returns that has nothing to say. */
    static Object nothing(Method method) {
        Class<?> type = method.getReturnType();
        if (type == boolean.class) {
            return false;
        }
        if (type == int.class) {
            return 0;
        }
        return type == long.class ? (Object) 0L : null;
    }
}
