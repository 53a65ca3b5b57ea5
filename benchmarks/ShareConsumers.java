// One measurement of Apache Kafka's own share consumer: drain, one or latency, as _share_consume.py has them.
// Arguments: what, bootstrap, group, topic, records. Output: the figures as JSON.
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class ShareConsumers {
    // before what is counted: joining and warming up
    static final int WARM = 500;
    static final int VALUE_SIZE = 100;

    public static void main(String[] args) {
        String what = args[0];
        int records = Integer.parseInt(args[4]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[1]);
        settings.put("group.id", args[2]);
        if (!what.equals("drain"))
            settings.put("share.acknowledgement.mode", "explicit");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings, bytes, bytes)) {
            consumer.subscribe(List.of(args[3]));
            if (what.equals("latency"))
                wait(consumer, records);
            else
                read(consumer, records, what.equals("one"));
            consumer.commitSync().values().forEach(error -> error.ifPresent(wrong -> { throw wrong; }));
        }
    }

    static void read(KafkaShareConsumer<byte[], byte[]> consumer, int records, boolean one) {
        long left = records, counted = 0, size = 0, began = 0;
        while (left > 0) {
            ConsumerRecords<byte[], byte[]> batch = consumer.poll(Duration.ofSeconds(1));
            for (ConsumerRecord<byte[], byte[]> record : batch) {
                size += record.value().length;
                if (one)
                    consumer.acknowledge(record);
            }
            if (began != 0)
                counted += batch.count();
            else if (batch.count() > 0)
                began = System.nanoTime();
            left -= batch.count();
        }
        double took = (System.nanoTime() - began) / 1e9;
        if (size != (records - left) * VALUE_SIZE)
            throw new IllegalStateException(size + " bytes of values were read");
        System.out.printf(Locale.ROOT, "{\"per_second\": %f}%n", counted / took);
    }

    static void wait(KafkaShareConsumer<byte[], byte[]> consumer, int records) {
        double[] took = new double[records];
        int count = 0;
        while (count < records) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                double made = ByteBuffer.wrap(record.value()).getDouble();
                if (count < records)
                    took[count++] = (System.nanoTime() / 1e9 - made) * 1e3;
                consumer.acknowledge(record);
            }
        }
        double[] ordered = Arrays.copyOfRange(took, WARM, records);
        Arrays.sort(ordered);
        System.out.printf(Locale.ROOT, "{\"p50_ms\": %f, \"p99_ms\": %f}%n",
            ordered[ordered.length / 2], ordered[ordered.length * 99 / 100]);
    }
}
