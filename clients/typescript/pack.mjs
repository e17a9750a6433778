// npm packs package.json as it is. Its scripts are for this folder only: npm warns at each installation of a package that has `prepare`.
// `node pack.mjs begin` builds the package and writes package.json without scripts; `node pack.mjs end` writes it as it was.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

const [own, kept] = ["package.json", "package.json.kept"].map((name) => new URL(name, import.meta.url));
// Also after a packing that was broken off.
if (existsSync(kept)) renameSync(kept, own);
if (process.argv[2] === "begin") {
  await import("./prepare.mjs");
  const text = readFileSync(own, "utf8");
  const { scripts, ...packed } = JSON.parse(text);
  writeFileSync(kept, text);
  writeFileSync(own, `${JSON.stringify(packed, null, 2)}\n`);
}
