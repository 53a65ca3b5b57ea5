import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;

/** Prints where Apache Kafka places replicas: arguments are PARTITIONS FACTOR RACKS, a line is a partition. */
public class Placement {
    public static void main(String[] words) {
        for (int at = 0; at + 2 < words.length; at += 3) {
            List<UsableBroker> brokers = new ArrayList<>();
            String[] racks = words[at + 2].split(",");
            for (int number = 0; number < racks.length; number++) {
                Optional<String> rack = racks[number].equals("-") ? Optional.empty() : Optional.of(racks[number]);
                brokers.add(new UsableBroker(number + 1, rack, false));
            }
            ClusterDescriber cluster = new ClusterDescriber() {
                public Iterator<UsableBroker> usableBrokers() {
                    return brokers.iterator();
                }

                public Uuid defaultDir(int broker) {
                    return Uuid.randomUuid();
                }
            };
            PlacementSpec spec =
                new PlacementSpec(0, Integer.parseInt(words[at]), (short) Integer.parseInt(words[at + 1]));
            for (PartitionAssignment each : new StripedReplicaPlacer(new Random()).place(spec, cluster).assignments()) {
                System.out.println(each.replicas().toString().replaceAll("[\\[\\] ]", ""));
            }
            System.out.println();
        }
    }
}
