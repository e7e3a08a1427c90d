// Who reads: a lane of slots for each trainer, the jobs they belong to, and what batches are stored as.
"use strict";

const Lanes = (() => {
  const { make, fill_table } = Dom;
  const { percent, bytes, brief, duration } = Format;
  const SLOTS_SHOWN = 64;
  const STANDS_S = 10; // with batches ready before it: it is stopped, or busy with something long

  function name_of(reader) {
    return `${reader.group === "default" ? "" : `${reader.group} `}replica ${reader.replica}`;
  }

  function draw_slots(reader, lane, words) {
    const slots = make("div", undefined, "slots");
    const held = Math.max(0, reader.taken - reader.released);
    const ready = Math.max(0, reader.published - reader.taken);
    for (let i = 0; i < Math.min(lane.slots, SLOTS_SHOWN); i++)
      slots.append(make("span", undefined, `slot ${i < held ? "held" : i < held + ready ? "ready" : "free"}`));
    slots.setAttribute("role", "img");
    slots.setAttribute("aria-label", `${name_of(reader)}: ${words}`);
    slots.title = words;
    return slots;
  }

  function draw_lane(reader, lane) {
    const line = make("li", undefined, "lane");
    const held = Math.max(0, reader.taken - reader.released);
    const ready = Math.max(0, reader.published - reader.taken);
    const words = `${held} with the trainer, ${ready} ready, ${Math.max(0, lane.slots - held - ready)} free`;
    const stands = reader.attached && ready > 0 && reader.silent_seconds > STANDS_S;
    const waits = make("span", stands ? `no progress for ${duration(reader.silent_seconds)}`
      : `waits ${percent(Math.min(1, reader.wait_rate))}`, "figure");
    if (stands || reader.wait_rate > 0.05) waits.className = "figure much";
    waits.title = `99% of the last batches arrived within ${brief(reader.next_wait_seconds.p99)}`;
    const name = make("span", name_of(reader) + (reader.attached ? "" : " (gone)"), "name");
    if (reader.process) name.title = `process ${reader.process}`;
    line.append(name, draw_slots(reader, lane, words), waits);
    return line;
  }

  // The jobs, where there are several or one has a name.
  function show_groups(target, groups) {
    const worth_it = groups.length > 1 || groups.some((group) => group.group !== "default");
    target.parentElement.hidden = !worth_it;
    if (!worth_it) return;
    fill_table(target, ["Job", "Trainers here", "Epoch : step", "Lag in batches"],
      groups.map((group) => [group.group, String(group.attached), `${group.epoch} : ${group.step}`, String(group.lag)]));
  }

  // What was chosen, and why.
  function describe_compression([one]) {
    if (one === undefined) return "";
    const otherwise = one.lanes_bytes < one.uncompressed_bytes ? `, not ${bytes(one.uncompressed_bytes)}` : "";
    return `Lanes take ${bytes(one.lanes_bytes)}${otherwise}: ${one.how}, ${one.why}. `;
  }

  // Bytes before and after, by codec, over all lanes.
  function describe_encodings(encodings) {
    const codecs = new Map();
    for (const one of encodings) {
      const sum = codecs.get(one.codec) ?? { decoded: 0, stored: 0 };
      sum.decoded += one.decoded_bytes;
      sum.stored += one.stored_bytes;
      codecs.set(one.codec, sum);
    }
    const words = [...codecs].map(([codec, { decoded, stored }]) => codec === "raw"
      ? `${bytes(stored)} as they are` : `${bytes(decoded)} with ${codec} in ${bytes(stored)}`);
    return words.length ? `Stored so far: ${words.join(", ")}.` : "";
  }

  return {
    show(stream) {
      const lanes = new Map(stream.lanes.map((lane) => [lane.replica, lane]));
      const lines = stream.readers.filter((reader) => lanes.has(reader.replica))
        .map((reader) => draw_lane(reader, lanes.get(reader.replica)));
      const list = document.getElementById("lanes");
      list.replaceChildren(...(lines.length ? lines : [make("li", "No trainer has attached yet.", "empty")]));
      show_groups(document.getElementById("groups"), stream.groups);
      document.getElementById("encodings").textContent =
        describe_compression(stream.compression) + describe_encodings(stream.encodings);
    },
  };
})();
