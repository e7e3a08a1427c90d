/* missing_file.h - where a file was looked for that is not there, and what is there instead. */
#ifndef CONTENT_RECORDS_MISSING_FILE_H
#define CONTENT_RECORDS_MISSING_FILE_H

/* " (in /data; the nearest name there is 'people.csv')", or the folder on the way to it that is not
 * there. Kept until the thread's next call. Only errors come here: it reads
 * the folder. */
const char *missing_file_note(const char *path);

#endif
