import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Many consumers in one JVM, for the start of a JVM costs more than a rebalance.
 *
 * A line of standard input, words separated by tabs, opens one ("open", its name, then settings as KEY=VALUE, with
 * "topic" among them) or closes one ("close", its name). A line of standard output tells what one holds: its name,
 * the partitions with commas between them, and "closed" behind that when it has left.
 */
public class JavaMembers {
    static final class Member implements Runnable, ConsumerRebalanceListener {
        final String name;
        final String topic;
        final KafkaConsumer<byte[], byte[]> consumer;
        final TreeSet<Integer> held = new TreeSet<>();
        volatile boolean closing = false;

        Member(String name, Properties settings) {
            this.name = name;
            this.topic = (String) settings.remove("topic");
            this.consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        }

        public void run() {
            consumer.subscribe(List.of(topic), this);
            while (!closing) consumer.poll(Duration.ofMillis(50));
            consumer.close();
            tell("\tclosed");
        }

        void tell(String end) {
            String numbers = held.stream().map(String::valueOf).collect(Collectors.joining(","));
            synchronized (System.out) {
                System.out.println(name + "\t" + numbers + end);
            }
        }

        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            for (TopicPartition partition : partitions) held.add(partition.partition());
            tell("");
        }

        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            for (TopicPartition partition : partitions) held.remove(partition.partition());
            tell("");
        }
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Member> members = new ConcurrentHashMap<>();
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            String[] words = line.split("\t");
            if (words[0].equals("close")) {
                members.remove(words[1]).closing = true;
                continue;
            }
            Properties settings = new Properties();
            for (int i = 2; i < words.length; i++) {
                int at = words[i].indexOf('=');
                settings.put(words[i].substring(0, at), words[i].substring(at + 1));
            }
            Member member = new Member(words[1], settings);
            members.put(words[1], member);
            new Thread(member, words[1]).start();
        }
        for (Member member : members.values()) member.closing = true;
    }
}
