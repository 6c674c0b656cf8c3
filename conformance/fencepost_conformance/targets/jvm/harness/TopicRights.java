package fencepost;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;

/**
 * The topics that the sender of each request may not describe (M-VAL-02, M-DESC-01, M-RX-06). The coordinator asks with
 * the request's context, even long after it; the correlation id in it is the request's id.
 */
final class TopicRights {
    private static final Metrics METRICS = new Metrics();

    private final Map<Integer, Set<String>> denied = new HashMap<>();

    void deny(int request, Set<String> topics) {
        if (!topics.isEmpty()) {
            denied.put(request, topics);
        }
    }

    Set<String> denied(int request) {
        return denied.getOrDefault(request, Set.of());
    }

    /** Returns the authorizer in the form of the release: by itself before 4.1, then as a plugin. */
    Map<String, Object> parts() {
        Authorizer authorizer = Reflect.implement(Authorizer.class, (proxy, method, arguments) ->
            method.getName().equals("authorize") ? authorize(arguments) : Reflect.nothing(method));
        Class<?> plugin = Reflect.find("org.apache.kafka.common.internals.Plugin");
        if (plugin == null) {
            return Map.of("withAuthorizer", Optional.of(authorizer));
        }
        for (Method wrap : plugin.getMethods()) {
            if (wrap.getName().equals("wrapInstance") && wrap.getParameterCount() == 3
                    && wrap.getParameterTypes()[2] == String.class) {
                return Map.of("withAuthorizerPlugin",
                    Optional.of(Reflect.call(wrap, null, authorizer, METRICS, "authorizer")));
            }
        }
        throw new IllegalStateException("Kafka's " + plugin.getName() + " wraps no instance");
    }

    private List<AuthorizationResult> authorize(Object[] arguments) {
        Set<String> closed = denied(((RequestContext) arguments[0]).correlationId());
        List<AuthorizationResult> results = new ArrayList<>();
        for (Object action : (List<?>) arguments[1]) {
            boolean no = closed.contains(((Action) action).resourcePattern().name());
            results.add(no ? AuthorizationResult.DENIED : AuthorizationResult.ALLOWED);
        }
        return results;
    }
}
