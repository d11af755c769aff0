// Numbers and times as people read them.

const THIN = "\u202f";

/** 65,531 stays readable with narrow spaces, and a count that is not known is a dash. */
export function count(value) {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) < 10000) return String(value);
  if (value >= 1e12) return value.toExponential(1).replace("e+", " × 10^");
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, THIN);
}

/** `1 pod`, `2 pods`. */
export function counted(value, noun, plural = `${noun}s`) {
  return `${count(value)} ${value === 1 ? noun : plural}`;
}

export function percent(part, whole) {
  if (!whole || part === null || part === undefined) return "–";
  const share = (100 * part) / whole;
  // 99.97 % is not full, and 0.2 % is not nothing.
  if (share > 0 && share < 1) return "< 1 %";
  if (share > 99 && share < 100) return "> 99 %";
  return `${Math.round(share)} %`;
}

/** @param {number} seconds */
export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

/** How long ago a time was; the server's clock may be a little ahead of ours. */
export function age(time, now) {
  if (!time) return "–";
  const seconds = (now - Date.parse(time)) / 1000;
  return Number.isFinite(seconds) ? duration(seconds) : "–";
}

const two = (value) => String(value).padStart(2, "0");

/** The time of day for today, else with the date; always local time, as the clock on the reader's wall. */
export function clock(time, now) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "–";
  const day = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const sameDay = new Date(now).toDateString() === date.toDateString();
  return sameDay ? day : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${day}`;
}
