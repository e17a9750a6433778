// Builds the package when npm installs this folder or packs it: makes the types from ../openapi.json, then compiles.
// npm does not install the tools of a folder that it links, so this does. It prints nothing unless it fails.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

function npm(...words) {
  // npm names the program that runs it, so that no other version is found.
  const [program, before] = process.env.npm_execpath ? [process.execPath, [process.env.npm_execpath]] : ["npm", []];
  // The flags of the installation that runs this are not those of this folder.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_config_(local_prefix|global|prefix|save|omit|include|production|dry_run|install_links)$/.test(name)));
  const ran = spawnSync(program, [...before, ...words], { cwd: here, encoding: "utf8", env });
  if (ran.status !== 0) {
    console.error(ran.stdout ?? "", ran.stderr ?? "", ran.error ?? "");
    process.exit(1);
  }
}

if (!existsSync(new URL("../openapi.json", import.meta.url))) {
  // A package that was built has everything.
  process.exit(0);
}
if (!process.env.PATH?.split(/[:;]/).some((folder) => existsSync(`${folder}/openapi-typescript`) && existsSync(`${folder}/tsc`))) {
  npm("install", "--ignore-scripts", "--no-save", "--no-package-lock", "--include=dev", "--no-audit", "--no-fund");
}
npm("run", "build");
