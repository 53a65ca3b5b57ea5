// Times Apache Kafka's own sticky assignor, warm. Standard input: a line "topic=partitions<TAB>...", then a line
// "member<TAB>topic,topic,..." for each member. Output: milliseconds fresh and after the first member has left, the
// moves of the latter, its highest and lowest load.
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

public class StickyAssignment {
    static final long WARM_NS = 3_000_000_000L;
    static final int ROUNDS = 5;

    public static void main(String[] args) {
        Scanner in = new Scanner(System.in, "UTF-8");
        Node node = new Node(0, "host", 1);
        Node[] replicas = {node};
        List<PartitionInfo> partitions = new ArrayList<>();
        for (String field : in.nextLine().split("\t")) {
            String[] parts = field.split("=");
            for (int number = 0; number < Integer.parseInt(parts[1]); number++)
                partitions.add(new PartitionInfo(parts[0], number, node, replicas, replicas));
        }
        Cluster cluster = new Cluster("id", List.of(node), partitions, Set.of(), Set.of());
        Map<String, List<String>> wanted = new TreeMap<>();
        while (in.hasNextLine()) {
            String[] parts = in.nextLine().split("\t");
            wanted.put(parts[0], Arrays.asList(parts[1].split(",")));
        }
        Map<String, List<TopicPartition>> nobody = new HashMap<>(), before = new HashMap<>(), after = new HashMap<>();
        double fresh = fastest(cluster, wanted, nobody, before);
        wanted.remove(wanted.keySet().iterator().next());
        double leave = fastest(cluster, wanted, before, after);
        int moves = 0, highest = 0, lowest = Integer.MAX_VALUE;
        for (Map.Entry<String, List<TopicPartition>> one : after.entrySet()) {
            Set<TopicPartition> kept = new HashSet<>(one.getValue());
            for (TopicPartition owned : before.get(one.getKey())) if (!kept.contains(owned)) moves++;
            highest = Math.max(highest, kept.size());
            lowest = Math.min(lowest, kept.size());
        }
        System.out.println(fresh + " " + leave + " " + moves + " " + highest + " " + lowest);
    }

    static double fastest(Cluster cluster, Map<String, List<String>> wanted, Map<String, List<TopicPartition>> owned,
                          Map<String, List<TopicPartition>> answer) {
        long begun = System.nanoTime(), best = Long.MAX_VALUE;
        for (int timed = 0; timed < ROUNDS; ) {
            boolean warm = System.nanoTime() - begun > WARM_NS;
            GroupSubscription group = new GroupSubscription(subscriptions(wanted, owned));
            StickyAssignor leader = new StickyAssignor();
            long start = System.nanoTime();
            Map<String, Assignment> assigned = leader.assign(cluster, group).groupAssignment();
            long elapsed = System.nanoTime() - start;
            if (warm || elapsed > WARM_NS) {
                best = Math.min(best, elapsed);
                timed++;
            }
            assigned.forEach((member, given) -> answer.put(member, given.partitions()));
        }
        return best / 1e6;
    }

    static Map<String, Subscription> subscriptions(Map<String, List<String>> wanted,
                                                   Map<String, List<TopicPartition>> owned) {
        Map<String, Subscription> found = new HashMap<>();
        wanted.forEach((member, topics) -> {
            StickyAssignor mine = new StickyAssignor();
            if (owned.containsKey(member))
                mine.onAssignment(new Assignment(owned.get(member)), new ConsumerGroupMetadata("g", 1, member, java.util.Optional.empty()));
            ByteBuffer userData = mine.subscriptionUserData(new HashSet<>(topics));
            found.put(member, new Subscription(topics, userData));
        });
        return found;
    }
}
