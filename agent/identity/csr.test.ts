import "reflect-metadata";
import { createPublicKey, webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";
import { expect, it } from "vitest";
import { createKeyPem, createRequest, publicKeyOf } from "./csr.ts";

it("makes requests that others read and verify, for short and long names", async () => {
  x509.cryptoProvider.set(webcrypto);
  for (const name of ["a", "web-1.example.com", "数据库", "x".repeat(64), "y".repeat(300)]) {
    const key = createKeyPem();
    const request = new x509.Pkcs10CertificateRequest(new Uint8Array(createRequest(key, name)));
    expect(request.subjectName.getField("CN")).toEqual([name]);
    expect(await request.verify()).toBe(true);
    expect(Buffer.from(request.publicKey.rawData).equals(publicKeyOf(key))).toBe(true);
    expect(createPublicKey(key).asymmetricKeyDetails?.namedCurve).toBe("prime256v1");
  }
});
