// Runs the blocks of docs/conceal.md in Java. Each line of the input is an operation ("conceal" or "reveal"), a key and a tweak in
// hexadecimal digits, and a number, with commas between them. For each line, the program prints the result.

import java.util.HexFormat;
import java.util.Scanner;
import org.bouncycastle.crypto.fpe.FPEFF1Engine;
import org.bouncycastle.crypto.params.FPEParameters;
import org.bouncycastle.crypto.params.KeyParameter;

public class Conceal {
    static long crypt(boolean conceal, long number, byte[] key, byte[] tweak) {
        byte[] bits = new byte[63];
        for (int i = 0; i < bits.length; i++) {
            bits[i] = (byte) (number >>> (62 - i) & 1);
        }
        FPEFF1Engine ff1 = new FPEFF1Engine();
        ff1.init(conceal, new FPEParameters(new KeyParameter(key), 2, tweak));
        ff1.processBlock(bits, 0, bits.length, bits, 0);
        long result = 0;
        for (byte bit : bits) {
            result = result << 1 | bit;
        }
        return result;
    }

    public static void main(String[] arguments) {
        HexFormat hex = HexFormat.of();
        Scanner input = new Scanner(System.in);
        while (input.hasNextLine()) {
            String[] parts = input.nextLine().split(",");
            byte[] key = hex.parseHex(parts[1]);
            byte[] tweak = hex.parseHex(parts[2]);
            System.out.println(crypt(parts[0].equals("conceal"), Long.parseLong(parts[3]), key, tweak));
        }
    }
}
