import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Java's transactional producer and reader of committed records.
 *
 * <p>BOOTSTRAP, then one of: send NAME TOPIC; fence NAME TOPIC; expire NAME TOPIC;
 * transform NAME SOURCE TARGET GROUP COUNT; read TOPIC COUNT.
 */
class Transactions {
  static String bootstrap;

  static KafkaProducer<String, String> producer(String name, int timeoutMs) {
    Properties config = new Properties();
    config.put("bootstrap.servers", bootstrap);
    config.put("transactional.id", name);
    config.put("transaction.timeout.ms", timeoutMs);
    config.put("key.serializer", StringSerializer.class.getName());
    config.put("value.serializer", StringSerializer.class.getName());
    return new KafkaProducer<>(config);
  }

  static KafkaConsumer<String, String> consumer(String group) {
    Properties config = new Properties();
    config.put("bootstrap.servers", bootstrap);
    config.put("isolation.level", "read_committed");
    config.put("auto.offset.reset", "earliest");
    config.put("enable.auto.commit", false);
    config.put("max.poll.records", 3);
    config.put("key.deserializer", StringDeserializer.class.getName());
    config.put("value.deserializer", StringDeserializer.class.getName());
    if (group != null) config.put("group.id", group);
    return new KafkaConsumer<>(config);
  }

  static ProducerRecord<String, String> record(String topic, String value) {
    return new ProducerRecord<>(topic, 0, null, value);
  }

  static void send(String name, String topic) {
    try (KafkaProducer<String, String> producer = producer(name, 60_000)) {
      producer.initTransactions();
      for (int number = 0; number < 9; number++) {
        producer.beginTransaction();
        producer.send(record(topic, "" + number));
        if (number % 3 == 2) {
          producer.flush();
          producer.abortTransaction();
        } else {
          producer.commitTransaction();
        }
      }
    }
  }

  /** A second producer of the id: the first can commit nothing any more. */
  static void fence(String name, String topic) throws Exception {
    KafkaProducer<String, String> older = producer(name, 60_000);
    older.initTransactions();
    older.beginTransaction();
    older.send(record(topic, "lost")).get();
    KafkaProducer<String, String> newer = producer(name, 60_000);
    newer.initTransactions();
    newer.beginTransaction();
    newer.send(record(topic, "kept")).get();
    expectFailure(older);
    newer.commitTransaction();
    newer.close();
    older.close(Duration.ZERO);
  }

  /** A transaction whose time is over is aborted, and its producer can go on with the next. */
  static void expire(String name, String topic) throws Exception {
    KafkaProducer<String, String> late = producer(name, 1_000);
    late.initTransactions();
    late.beginTransaction();
    late.send(record(topic, "lost")).get();
    try (KafkaConsumer<String, String> consumer = consumer(null)) {
      TopicPartition place = new TopicPartition(topic, 0);
      // what is open holds readers of committed records up, until the broker has aborted it
      while (consumer.endOffsets(List.of(place)).get(place) == 0) Thread.sleep(100);
    }
    expectFailure(late);
    late.close(Duration.ZERO);
    try (KafkaProducer<String, String> next = producer(name, 60_000)) {
      next.initTransactions();
      next.beginTransaction();
      next.send(record(topic, "kept"));
      next.commitTransaction();
    }
  }

  static void expectFailure(KafkaProducer<String, String> producer) {
    try {
      producer.commitTransaction();
    } catch (KafkaException expected) {
      return;
    }
    throw new AssertionError("a transaction that was aborted is committed");
  }

  static void transform(String name, String source, String target, String group, int count) {
    try (KafkaProducer<String, String> producer = producer(name, 60_000);
        KafkaConsumer<String, String> consumer = consumer(group)) {
      producer.initTransactions();
      consumer.subscribe(List.of(source));
      int done = 0;
      while (done < count) {
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        consumer.poll(Duration.ofSeconds(1)).forEach(records::add);
        if (records.isEmpty()) continue;
        producer.beginTransaction();
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (ConsumerRecord<String, String> record : records) {
          producer.send(record(target, "twice " + record.value()));
          TopicPartition place = new TopicPartition(record.topic(), record.partition());
          offsets.put(place, new OffsetAndMetadata(record.offset() + 1));
        }
        producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        producer.commitTransaction();
        done += records.size();
      }
    }
  }

  static void read(String topic, int count) {
    try (KafkaConsumer<String, String> consumer = consumer(null)) {
      TopicPartition place = new TopicPartition(topic, 0);
      consumer.assign(List.of(place));
      consumer.seekToBeginning(List.of(place));
      int done = 0;
      while (done < count) {
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
          System.out.println(record.value());
          done++;
        }
      }
    }
  }

  public static void main(String[] given) throws Exception {
    bootstrap = given[0];
    switch (given[1]) {
      case "send" -> send(given[2], given[3]);
      case "fence" -> fence(given[2], given[3]);
      case "expire" -> expire(given[2], given[3]);
      case "transform" ->
          transform(given[2], given[3], given[4], given[5], Integer.parseInt(given[6]));
      case "read" -> read(given[2], Integer.parseInt(given[3]));
      default -> throw new IllegalArgumentException(given[1]);
    }
  }
}
