import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.nio.ByteBuffer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.CloseableIterator;
import org.apache.kafka.common.utils.internals.PrimitiveRef;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;

/**
 * Reads batches from standard input, each behind its length (4 bytes), and says of each in a line what
 * Kafka's own LogValidator, on an append by a client, and then its reader make of it: "ok" and the largest
 * timestamp, or "no" and why.
 */
public class Verdicts {
    static final LogValidator.MetricsRecorder METRICS = new LogValidator.MetricsRecorder() {
        public void recordInvalidMagic() { }
        public void recordInvalidOffset() { }
        public void recordInvalidSequence() { }
        public void recordInvalidChecksums() { }
        public void recordNoKeyCompactedTopic() { }
    };

    public static void main(String[] args) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        StringBuilder out = new StringBuilder();
        while (true) {
            byte[] p;
            try {
                p = new byte[in.readInt()];
            } catch (EOFException end) {
                break;
            }
            in.readFully(p);
            String verdict;
            try {
                verdict = "ok " + append(p);
            } catch (Throwable why) {
                verdict = "no " + why.toString().replace('\n', ' ');
            }
            out.append(verdict).append('\n');
        }
        System.out.print(out);
        System.out.flush();
    }

    static long append(byte[] p) throws Exception {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(p));
        CompressionType type = null;
        int batches = 0;
        for (MutableRecordBatch batch : records.batches()) {
            batch.ensureValid();
            type = batch.compressionType();
            batches++;
        }
        if (batches != 1)
            throw new IllegalArgumentException(batches + " batches");
        LogValidator validator = new LogValidator(records, new TopicPartition("t", 0), Time.SYSTEM, type,
            Compression.of(type).build(), false, (byte) 2, TimestampType.CREATE_TIME, Long.MAX_VALUE, Long.MAX_VALUE,
            0, AppendOrigin.CLIENT);
        LogValidator.ValidationResult result = validator.validateMessagesAndAssignOffsets(
            PrimitiveRef.ofLong(100), METRICS, BufferSupplier.NO_CACHING);
        for (MutableRecordBatch batch : result.validatedRecords().batches()) {
            try (CloseableIterator<Record> it = batch.streamingIterator(BufferSupplier.NO_CACHING)) {
                while (it.hasNext())
                    it.next();
            }
        }
        return result.maxTimestampMs();
    }
}
