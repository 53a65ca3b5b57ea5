// Asks Apache Kafka's own range and roundrobin assignors. One case a line on standard input, its answer on standard
// output. Fields are parted by tabs:
//   assignor   topic=racks of p0/racks of p1/...   member,instance,rack,topic,topic...   (any number of the latter two)
// Racks of a partition are parted by "+"; "-" stands for nothing. The answer: member=topic:number,topic:number...
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Scanner;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

public class KafkaAnswers {
    public static void main(String[] args) {
        Scanner in = new Scanner(System.in, "UTF-8");
        while (in.hasNextLine()) System.out.println(answer(in.nextLine().split("\t")));
    }

    static String answer(String[] fields) {
        ConsumerPartitionAssignor assignor =
            fields[0].equals("range") ? new RangeAssignor() : new RoundRobinAssignor();
        Map<String, Node> nodes = new HashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        Map<String, Subscription> members = new HashMap<>();
        for (String field : Arrays.asList(fields).subList(1, fields.length)) {
            if (field.contains("=")) addTopic(field, nodes, partitions);
            else addMember(field.split(",", -1), members);
        }
        Cluster cluster = new Cluster("id", nodes.values(), partitions, Set.of(), Set.of());
        Map<String, Assignment> answers =
            assignor.assign(cluster, new GroupSubscription(members)).groupAssignment();
        return new TreeMap<>(answers).entrySet().stream()
            .map(e -> e.getKey() + "=" + e.getValue().partitions().stream()
                .map(p -> p.topic() + ":" + p.partition()).collect(Collectors.joining(",")))
            .collect(Collectors.joining("\t"));
    }

    static void addTopic(String field, Map<String, Node> nodes, List<PartitionInfo> partitions) {
        String[] parts = field.split("=");
        int number = 0;
        for (String racks : parts[1].split("/")) {
            Node[] replicas = Arrays.stream(racks.split("\\+"))
                .map(r -> nodes.computeIfAbsent(r, k -> new Node(nodes.size(), "h", 1, k.equals("-") ? null : k)))
                .toArray(Node[]::new);
            partitions.add(new PartitionInfo(parts[0], number++, replicas[0], replicas, replicas));
        }
    }

    static void addMember(String[] parts, Map<String, Subscription> members) {
        Optional<String> rack = parts[2].equals("-") ? Optional.empty() : Optional.of(parts[2]);
        List<String> topics = Arrays.asList(parts).subList(3, parts.length);
        Subscription subscription = new Subscription(topics, null, List.of(), -1, rack);
        if (!parts[1].equals("-")) subscription.setGroupInstanceId(Optional.of(parts[1]));
        members.put(parts[0], subscription);
    }
}
